"""The SQLite engine: one writer with group commit, readers, migrations, integrity, copies."""

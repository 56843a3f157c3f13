"""SQLite: a single writer with group commit, readers, migrations, integrity checks, copies."""

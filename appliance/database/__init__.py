"""SQLite storage: one writer with group commit, readers, migrations, checks and copies."""

"""The rows: SQLite through apsw, one file per noun."""

"""The records: what was asked for (`Recipe`), of which data (`Source`), and what came of it."""

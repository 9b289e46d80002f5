"""The data dictionary: docs/dictionary.md, made from the declarations of tables and views."""

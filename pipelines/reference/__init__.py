"""The reference pages of the documentation, made from what the code declares."""

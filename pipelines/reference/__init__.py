"""What tables, columns, keys and codes mean: pages of the documentation, texts on a terminal."""

"""`quotaflow report`: what the tables say, as one HTML file that needs no network."""

"""Tagging: what tasks have in common that find spans by tags (BIO and the like): a reader, a head, a metric."""

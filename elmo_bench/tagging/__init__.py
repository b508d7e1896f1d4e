"""Reader, head and metric shared by tasks that mark spans with tags (BIO and similar schemes)."""

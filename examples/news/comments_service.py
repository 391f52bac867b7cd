"""The comments service: python examples/news/comments_service.py examples/news/comments.toml"""

from site_pages import main

if __name__ == "__main__":
    main("comment", "comments.html")

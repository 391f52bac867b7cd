"""The news service: python examples/news/news_service.py examples/news/news.toml"""

from site_pages import main

if __name__ == "__main__":
    main("news", "news.html")

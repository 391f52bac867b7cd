"""What a service shows: posts in the order in which it took them, each once, and a wake-up for those who watch.

In memory; it is filled from the log at the start. Refuses to know where posts come from and who watches."""

from typing import Annotated, Literal

import msgspec
import trio

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]


class Post(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """News, or a comment about one. id: made by the browser, so that a post that is sent twice is one post"""

    id: Name
    kind: Literal["news", "comment"]
    author: Name
    text: Text
    about: str = ""  # id of the news that a comment is about


class Board:
    def __init__(self) -> None:
        self.posts: list[Post] = []
        self._ids: set[str] = set()
        self._changed = trio.Event()

    def has(self, post: Post) -> bool:
        return post.id in self._ids

    def add(self, post: Post) -> None:
        """Nothing, if it is there already."""
        if self.has(post):
            return
        self._ids.add(post.id)
        self.posts.append(post)
        self._changed.set()
        self._changed = trio.Event()

    async def wait_more(self, count: int, seconds: float) -> list[Post]:
        """The posts behind the first `count`; none if none has come after so long."""
        with trio.move_on_after(seconds):
            while len(self.posts) <= count:
                await self._changed.wait()
        return self.posts[count:]

"""Messages by type: values of msgspec types, published to and received from topics. docs/guides/typed-messages.md

    class Temperature(msgspec.Struct):
        celsius: float

    TEMPERATURES = rumq.typed.Topic("plant/{pump}/temperature", Temperature)

    await rumq.typed.publish(client, TEMPERATURES, Temperature(21.5), pump="7", qos=1)
    await rumq.typed.subscribe(client, TEMPERATURES, from_="earliest")
    async for each in rumq.typed.messages(client, TEMPERATURES):
        print(each.names["pump"], each.value.celsius)

Stands on the public API of `rumq.client`."""

from rumq.typed.payload_codec import PayloadMismatch
from rumq.typed.topic import Topic
from rumq.typed.typed_messages import TypedMessage, messages, publish, subscribe

__all__ = ["PayloadMismatch", "Topic", "TypedMessage", "messages", "publish", "subscribe"]

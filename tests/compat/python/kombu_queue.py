"""kombu, Celery's transport: queues, acknowledgements, the return of messages that no consumer
acknowledged, priorities and fan-out. It uses lists, hashes, sets, sorted sets, blocking pops and WATCH."""
import socket
import time

import redis
from kombu import Connection, Exchange, Queue

from steps import HOST, PORT, Background, step, until

WORK = Queue("work", Exchange("work"), routing_key="work")


def connected(**options):
    return Connection(f"redis://{HOST}:{PORT}/0", transport_options=options)


def drained(connection, queue, count, **consumer):
    """Receives messages and acknowledges them; returns their bodies."""
    bodies = []

    def receive(body, message):
        bodies.append(body)
        message.ack()
    with connection.Consumer(queue, callbacks=[receive], **consumer):
        while len(bodies) < count:
            connection.drain_events(timeout=20)
    return bodies


def publish(connection, bodies, **options):
    producer = connection.Producer(serializer="json")
    for body in bodies:
        producer.publish(body, exchange=WORK.exchange, routing_key="work", declare=[WORK], **options)


def queues(r):
    with connected() as one, connected() as two:
        publish(one, ["a", "b", "c"])
        step("published", [r.llen("work"), r.type("work"), r.type("_kombu.binding.work")],
             [3, b"list", b"set"])
        step("received in order", drained(two, WORK, 3), ["a", "b", "c"])
        step("nothing is left", r.exists("work", "unacked", "unacked_index"), 0)
        waiter = Background(drained, two, WORK, 1)
        until("a consumer that waits", lambda: r.info("clients")["blocked_clients"] == 1)
        publish(one, ["late"])
        step("a consumer that waits gets it", waiter.result(), ["late"])
        simple = one.SimpleQueue("simple")
        simple.put({"n": 1})
        message = simple.get(timeout=5)
        step("not acknowledged: a hash and a sorted set", [message.payload, r.hlen("unacked"),
                                                           r.zcard("unacked_index")], [{"n": 1}, 1, 1])
        message.requeue()
        step("requeued", [r.llen("simple"), r.hlen("unacked")], [1, 0])
        simple.get(timeout=5).ack()
        step("acknowledged", [r.llen("simple"), r.exists("unacked", "unacked_index")], [0, 0])
        simple.close()


def lost_consumer(r):
    """A consumer that ends without an acknowledgement: the message comes back after the timeout."""
    with connected() as one:
        publish(one, ["precious"])
    lost = connected(visibility_timeout=0.05)
    got = []
    with lost.Consumer(WORK, callbacks=[lambda body, message: got.append(body)], accept=["json"]):
        until("the message", lambda: got or lost.drain_events(timeout=5) or got)
        step("received, not acknowledged", [got, r.zcard("unacked_index")], [["precious"], 1])
        time.sleep(0.06)
        with connected(visibility_timeout=0.05, unacked_restore_limit=10) as other:
            other.default_channel.qos.restore_visible(num=10)
            step("back in the queue", [r.llen("work"), r.zcard("unacked_index"), r.exists("unacked_mutex")],
                 [1, 0, 0])
            step("received again", drained(other, WORK, 1), ["precious"])
    lost.close()


def priorities():
    with connected(queue_order_strategy="priority", priority_steps=[0, 5, 9]) as one:
        for priority, body in ((9, "low"), (0, "urgent"), (5, "normal")):
            publish(one, [body], priority=priority)
        step("priorities: several lists", drained(one, WORK, 3), ["urgent", "normal", "low"])


def fan_out(r):
    exchange = Exchange("news", type="fanout")
    readers = [connected() for _ in range(3)]
    bodies, consumers = [], []
    for number, reader in enumerate(readers):
        queue = Queue(f"reader-{number}", exchange, auto_delete=True)
        consumer = reader.Consumer(
            queue, callbacks=[lambda body, message: (bodies.append(body), message.ack())])
        consumer.consume()
        consumers.append(consumer)
        try:
            reader.drain_events(timeout=0.05)  # subscribes
        except socket.timeout:
            pass
    until("three subscribers", lambda: sum(int(client["psub"]) for client in r.client_list()) == 3)
    with connected() as one:
        one.Producer(exchange=exchange, serializer="json").publish("headline", routing_key="")
    for reader in readers:
        reader.drain_events(timeout=10)
    step("fan-out by messages", bodies, ["headline"] * 3)
    for consumer, reader in zip(consumers, readers):
        consumer.cancel()
        reader.close()


def together(r):
    with connected() as one:
        publish(one, list(range(60)))
    crowd = [Background(drained, connected(), WORK, 15, prefetch_count=1) for _ in range(4)]
    got = sum((each.result() for each in crowd), [])
    step("four consumers, each message once", sorted(got) == list(range(60)), True)
    step("no message is left", r.llen("work"), 0)


def main():
    r = redis.Redis(HOST, PORT)
    queues(r)
    lost_consumer(r)
    priorities()
    fan_out(r)
    together(r)


main()

// A network with a delay, for servers that are on this machine: relay DELAY_MS PORT... accepts connections
// for each port at another port, and passes all bytes on after DELAY_MS to DELAY_MS + 1 milliseconds, in
// both directions. Prints its own ports, a line each.
#include <fmt/format.h>
#include <netinet/in.h>
#include <uv.h>

#include <charconv>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Pair;

void need(int status, const char* what) {
  if (status >= 0) return;
  std::cerr << "relay: " << what << ": " << uv_strerror(status) << "\n";
  _exit(1);
}

int number(const char* text) {
  int found = 0;
  const char* end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, found);
  need(error == std::errc{} && at == end && found >= 0 ? 0 : UV_EINVAL, text);
  return found;
}

// One end of a connection, and the bytes on the way to it.
struct End {
  struct Piece {
    uint64_t due_ms;
    std::string bytes;  // empty: the other end has closed
  };
  Pair* pair = nullptr;
  End* other = nullptr;
  uv_tcp_t tcp{};
  uv_timer_t timer{};
  std::deque<Piece> pieces;
};

struct Pair {
  End client;
  End server;
  uv_connect_t connect{};
  int handles = 4;
  uint64_t delay_ms = 0;
};

struct Door {
  uv_tcp_t listener{};
  int leads_to = 0;
  uint64_t delay_ms = 0;
};

uv_stream_t* stream(End& end) { return reinterpret_cast<uv_stream_t*>(&end.tcp); }

void close(Pair& pair) {
  for (End* end : {&pair.client, &pair.server}) {
    for (uv_handle_t* handle :
         {reinterpret_cast<uv_handle_t*>(&end->tcp), reinterpret_cast<uv_handle_t*>(&end->timer)}) {
      if (uv_is_closing(handle)) continue;
      uv_close(handle, [](uv_handle_t* closed) {
        Pair* owner = static_cast<End*>(closed->data)->pair;
        if (--owner->handles == 0) delete owner;
      });
    }
  }
}

void write(End& end, std::string bytes) {
  struct Write {
    uv_write_t request{};
    std::string bytes;
  };
  auto write = std::make_unique<Write>();
  write->bytes = std::move(bytes);
  write->request.data = write.get();
  uv_buf_t buf = uv_buf_init(write->bytes.data(), static_cast<unsigned>(write->bytes.size()));
  const int status = uv_write(&write->request, stream(end), &buf, 1,
                              [](uv_write_t* request, int) { delete static_cast<Write*>(request->data); });
  status == 0 ? (void)write.release() : close(*end.pair);
}

void deliver(uv_timer_t* timer) {
  End& end = *static_cast<End*>(timer->data);
  while (!end.pieces.empty() && end.pieces.front().due_ms <= uv_now(timer->loop)) {
    if (end.pieces.front().bytes.empty()) return close(*end.pair);
    write(end, std::move(end.pieces.front().bytes));
    end.pieces.pop_front();
  }
  if (end.pieces.empty()) return;
  uv_timer_start(timer, deliver, end.pieces.front().due_ms - uv_now(timer->loop), 0);
}

void send_later(End& end, std::string bytes) {
  end.pieces.push_back({uv_now(end.tcp.loop) + end.pair->delay_ms, std::move(bytes)});
  if (end.pieces.size() == 1) uv_timer_start(&end.timer, deliver, end.pair->delay_ms, 0);
}

void read(End& end) {
  static char buffer[1 << 16];
  uv_read_start(
      stream(end), [](uv_handle_t*, size_t, uv_buf_t* buf) { *buf = uv_buf_init(buffer, sizeof buffer); },
      [](uv_stream_t* from, ssize_t n, const uv_buf_t* buf) {
        End& other = *static_cast<End*>(from->data)->other;
        if (n > 0) return send_later(other, {buf->base, static_cast<size_t>(n)});
        if (n == 0) return;
        uv_read_stop(from);
        send_later(other, "");
      });
}

void accept(uv_stream_t* listener, int status) {
  need(status, "listen");
  const Door& door = *static_cast<Door*>(listener->data);
  auto* pair = new Pair;
  pair->delay_ms = door.delay_ms;
  for (End* end : {&pair->client, &pair->server}) {
    end->pair = pair;
    end->other = end == &pair->client ? &pair->server : &pair->client;
    uv_tcp_init(listener->loop, &end->tcp);
    uv_tcp_nodelay(&end->tcp, 1);
    uv_timer_init(listener->loop, &end->timer);
    end->tcp.data = end->timer.data = end;
  }
  uv_accept(listener, stream(pair->client));
  sockaddr_in to{};
  uv_ip4_addr("127.0.0.1", door.leads_to, &to);
  pair->connect.data = pair;
  uv_tcp_connect(&pair->connect, &pair->server.tcp, reinterpret_cast<sockaddr*>(&to),
                 [](uv_connect_t* connect, int failed) {
                   Pair& connected = *static_cast<Pair*>(connect->data);
                   if (failed != 0) return close(connected);
                   read(connected.client);
                   read(connected.server);
                 });
}

int open_door(uv_loop_t& loop, Door& door) {
  sockaddr_in any{};
  uv_ip4_addr("127.0.0.1", 0, &any);
  uv_tcp_init(&loop, &door.listener);
  door.listener.data = &door;
  need(uv_tcp_bind(&door.listener, reinterpret_cast<sockaddr*>(&any), 0), "bind");
  need(uv_listen(reinterpret_cast<uv_stream_t*>(&door.listener), 512, accept), "listen");
  int size = sizeof any;
  uv_tcp_getsockname(&door.listener, reinterpret_cast<sockaddr*>(&any), &size);
  return ntohs(any.sin_port);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "relay DELAY_MS PORT...\n";
    return 1;
  }
  uv_loop_t loop;
  uv_loop_init(&loop);
  std::vector<Door> doors(static_cast<size_t>(argc) - 2);
  for (size_t i = 0; i < doors.size(); ++i) {
    doors[i].delay_ms = static_cast<uint64_t>(number(argv[1]));
    doors[i].leads_to = number(argv[i + 2]);
    fmt::print("{}\n", open_door(loop, doors[i]));
  }
  std::fflush(stdout);
  return uv_run(&loop, UV_RUN_DEFAULT);
}

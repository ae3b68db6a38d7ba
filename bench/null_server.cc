// The least work of any server on libuv: it reads, counts requests by the `*` at the begin of each, and
// replies `:1`, without a parser or a keyspace. Usage: null-server SOCKET
#include <uv.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace {

struct Client {
  uv_pipe_t pipe;
  uv_write_t request;
  std::string replies;
};

void allocate(uv_handle_t*, size_t, uv_buf_t* buf) {
  static char bytes[size_t{64} << 10U];
  *buf = uv_buf_init(bytes, sizeof bytes);
}

// A request of plain words has one `*`, at its begin.
void read(uv_stream_t* stream, ssize_t n, const uv_buf_t* buf) {
  auto* client = static_cast<Client*>(stream->data);
  if (n < 0) {
    return uv_close(reinterpret_cast<uv_handle_t*>(stream),
                    [](uv_handle_t* handle) { delete static_cast<Client*>(handle->data); });
  }
  const auto requests = std::count(buf->base, buf->base + n, '*');
  std::string replies;
  for (auto i = requests; i > 0; --i) replies += ":1\r\n";
  uv_buf_t out = uv_buf_init(replies.data(), static_cast<unsigned>(replies.size()));
  const int written = uv_try_write(stream, &out, 1);
  if (written == static_cast<int>(replies.size())) return;
  client->replies = replies.substr(static_cast<size_t>(std::max(written, 0)));
  out = uv_buf_init(client->replies.data(), static_cast<unsigned>(client->replies.size()));
  uv_write(&client->request, stream, &out, 1, nullptr);  // the load generator waits before it sends more
}

void accept(uv_stream_t* listener, int) {
  auto* client = new Client;
  uv_pipe_init(listener->loop, &client->pipe, 0);
  client->pipe.data = client;
  auto* stream = reinterpret_cast<uv_stream_t*>(&client->pipe);
  if (uv_accept(listener, stream) == 0) uv_read_start(stream, allocate, read);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("Usage: null-server SOCKET\n", stderr), 2;
  uv_loop_t* loop = uv_default_loop();
  uv_pipe_t listener;
  uv_pipe_init(loop, &listener, 0);
  int error = uv_pipe_bind(&listener, argv[1]);
  if (error == 0) error = uv_listen(reinterpret_cast<uv_stream_t*>(&listener), 511, accept);
  if (error != 0) return std::fprintf(stderr, "null-server: %s: %s\n", argv[1], uv_strerror(error)), 1;
  return uv_run(loop, UV_RUN_DEFAULT);
}

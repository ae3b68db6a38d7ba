// The engine writes replies in the protocol, as a server does; the loop passes them on later. Requests are
// not encoded, because they never leave the process.
#include "client/transport/embedded.h"

#include <cassert>
#include <optional>
#include <utility>

namespace holdfast::client {

EmbeddedConnection::EmbeddedConnection(Loop& loop, const Address& address, ConnectionUser& user)
    : user_(user),
      engine_(EmbeddedEngine::use(address.host)),
      mailbox_(std::make_shared<Mailbox>(Mailbox{loop, this, {}, false, true})),
      id_(engine_->open(mailbox_)),
      reader_(address.resp3 ? Protocol::kResp3 : Protocol::kResp2) {
  loop.post([mailbox = mailbox_] { receive(mailbox); });
}

EmbeddedConnection::~EmbeddedConnection() {
  mailbox_->owner = nullptr;
  engine_->close(id_);
}

// Each call of user_ may destroy the connection.
void EmbeddedConnection::receive(const std::shared_ptr<Mailbox>& mailbox) {
  EmbeddedConnection* self = mailbox->owner;
  if (self == nullptr) return;
  const EmbeddedEngine::Post post = self->engine_->collect(*mailbox);
  if (!std::exchange(self->open_, true)) self->user_.opened();
  if (mailbox->owner == nullptr) return;
  for (Value& value : self->read(post.replies)) {
    self->user_.answered(std::move(value));
    if (mailbox->owner == nullptr) return;
  }
  if (post.ended) self->user_.broke("connection closed");
}

std::vector<Value> EmbeddedConnection::read(const std::string& replies) {
  std::vector<Value> values;
  reader_.feed(replies);
  while (std::optional<Value> value = reader_.next()) values.push_back(std::move(*value));
  assert(reader_.error().empty() && "the engine knows its protocol");
  return values;
}

}  // namespace holdfast::client

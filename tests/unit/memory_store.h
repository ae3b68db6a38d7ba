// A LeaseStore as a user may write it: it handles one document after the other, without atomicity. A test
// can make it fail at any step, before or after the step's effect, for one document or by an exception.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "holdfast/lease.h"

namespace holdfast {

class MemoryStore final : public LeaseStore {
 public:
  enum class Failure : uint8_t { kReportsBefore, kReportsAfter, kThrowsBefore, kThrowsAfter };
  struct Stored {
    std::string value;
    uint64_t etag = 0;
    std::string lease;
    std::optional<milliseconds> ttl;  // nullopt: no expiry
  };

  std::vector<Answer> insert(const std::string& lease, const std::vector<Document>& documents,
                             milliseconds ttl) override {
    return each(documents, [&](const Document& document) {
      if (stored_.contains(document.key)) return Answer{Verdict::kExists, 0, {}};
      stored_[document.key] = {document.value, ++last_etag_, lease, ttl};
      return Answer{Verdict::kDone, last_etag_, {}};
    });
  }

  std::vector<Answer> touch(const std::string& lease, const std::vector<Document>& documents,
                            std::optional<milliseconds> ttl) override {
    return each(documents, [&](const Document& document) {
      const Verdict verdict = find(lease, document);
      if (verdict == Verdict::kDone) stored_[document.key].ttl = ttl;
      return Answer{verdict, 0, {}};
    });
  }

  std::vector<Answer> remove(const std::string& lease, const std::vector<Document>& documents) override {
    return each(documents, [&](const Document& document) {
      const Verdict verdict = find(lease, document);
      if (verdict == Verdict::kDone) stored_.erase(document.key);
      return Answer{verdict, 0, {}};
    });
  }

  // Actions of other clients.
  void put(const std::string& key) { stored_[key] = {"foreign", ++last_etag_, {}, {}}; }
  void lose(const std::string& key) { stored_.erase(key); }

  // Makes step number `step` and the `times - 1` steps after it fail. Steps count from now, from 0. A step
  // is the work for one document.
  void fail_at(int64_t step, Failure how, int64_t times = 1) {
    failing_from_ = step_ + step;
    failing_until_ = failing_from_ + times;
    how_ = how;
  }
  int64_t steps() const { return step_; }

  const std::map<std::string, Stored>& stored() const { return stored_; }
  size_t of_leases() const {
    size_t n = 0;
    for (const auto& [key, stored] : stored_) n += stored.lease.empty() ? 0 : 1;
    return n;
  }

 private:
  Verdict find(const std::string& lease, const Document& document) const {
    const auto it = stored_.find(document.key);
    if (it == stored_.end()) return Verdict::kMissing;
    const bool own = document.etag == 0 ? it->second.lease == lease : it->second.etag == document.etag;
    return own ? Verdict::kDone : Verdict::kChanged;
  }

  template <class Do>
  std::vector<Answer> each(const std::vector<Document>& documents, const Do& one) {
    std::vector<Answer> answers;
    for (const Document& document : documents) {
      const int64_t step = step_++;
      const bool fails = step >= failing_from_ && step < failing_until_;
      const bool before = how_ == Failure::kReportsBefore || how_ == Failure::kThrowsBefore;
      const bool throws = how_ == Failure::kThrowsBefore || how_ == Failure::kThrowsAfter;
      Answer answer;  // kFailed
      if (!fails || !before) answer = one(document);
      if (fails && throws) throw std::runtime_error("no disk");
      if (fails) answer = {Verdict::kFailed, 0, std::make_exception_ptr(std::runtime_error("no disk"))};
      answers.push_back(answer);
    }
    return answers;
  }

  std::map<std::string, Stored> stored_;
  uint64_t last_etag_ = 0;
  int64_t step_ = 0;
  int64_t failing_from_ = -1;
  int64_t failing_until_ = -1;
  Failure how_ = Failure::kReportsBefore;
};

}  // namespace holdfast

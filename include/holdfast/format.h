// Formatters for the library fmt: fmt::format("{}", hold). Include this header to have them; the program
// then needs fmt 9 or later, which the other headers and the library do not use.
//
//   Outcome, ServerError, LossReason, ClientEvent::Kind, Lease::State   the name, as in "not owner"; takes
//                                                                       the options of a string, as in
//                                                                       {:>12}
//   Status, Result    {} the outcome and the message; {:s} also what each server answered
//   ServerReport      "10.0.0.7:7379: refused: NOPERM ..."
//   Hold              "printer, token 42"; "no lock" if it is empty
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "holdfast/client.h"
#include "holdfast/lease.h"

namespace holdfast::detail {

// For a type with name_of().
template <class T>
struct NameFormatter : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(T value, Context& context) const {
    const std::string_view name = name_of(value);
    return fmt::formatter<fmt::string_view>::format({name.data(), name.size()}, context);
  }
};

struct PlainFormatter {
  template <class Context>
  constexpr auto parse(Context& context) {
    return context.begin();
  }
};

}  // namespace holdfast::detail

template <>
struct fmt::formatter<holdfast::Outcome> : holdfast::detail::NameFormatter<holdfast::Outcome> {};
template <>
struct fmt::formatter<holdfast::ServerError> : holdfast::detail::NameFormatter<holdfast::ServerError> {};
template <>
struct fmt::formatter<holdfast::LossReason> : holdfast::detail::NameFormatter<holdfast::LossReason> {};
template <>
struct fmt::formatter<holdfast::ClientEvent::Kind>
    : holdfast::detail::NameFormatter<holdfast::ClientEvent::Kind> {};
template <>
struct fmt::formatter<holdfast::Lease::State> : holdfast::detail::NameFormatter<holdfast::Lease::State> {};

template <>
struct fmt::formatter<holdfast::ServerReport> : holdfast::detail::PlainFormatter {
  template <class Context>
  auto format(const holdfast::ServerReport& report, Context& context) const {
    const auto out = fmt::format_to(context.out(), "{}: {}", report.server, report.outcome);
    return report.text.empty() ? out : fmt::format_to(out, ": {}", report.text);
  }
};

template <>
struct fmt::formatter<holdfast::Status> {
  template <class Context>
  constexpr auto parse(Context& context) {
    auto at = context.begin();
    if (at != context.end() && *at == 's') {
      servers_ = true;
      ++at;
    }
    return at;
  }
  template <class Context>
  auto format(const holdfast::Status& status, Context& context) const {
    auto out = fmt::format_to(context.out(), "{}", status.outcome);
    if (!status.message.empty()) out = fmt::format_to(out, ": {}", status.message);
    if (!servers_ || status.servers.empty()) return out;
    const char* before = " (";
    for (const holdfast::ServerReport& report : status.servers) {
      out = fmt::format_to(out, "{}{}", before, report);
      before = "; ";
    }
    return fmt::format_to(out, ")");
  }

 private:
  bool servers_ = false;
};

template <class T>
struct fmt::formatter<holdfast::Result<T>> : fmt::formatter<holdfast::Status> {};

template <>
struct fmt::formatter<holdfast::Hold> : holdfast::detail::PlainFormatter {
  template <class Context>
  auto format(const holdfast::Hold& hold, Context& context) const {
    if (hold.token() == 0) return fmt::format_to(context.out(), "no lock");
    const std::string_view key = hold.key();
    return fmt::format_to(context.out(), "{}, token {}", fmt::string_view(key.data(), key.size()),
                          hold.token());
  }
};

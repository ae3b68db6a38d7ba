// Changes of options, and the file that CONFIG REWRITE replaces.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "files/temp_folder.h"
#include "io/config/fixed_settings.h"
#include "io/config/options.h"
#include "io/config/options_table.h"
#include "io/os/replace_file.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Options options_of(const std::string& path) {
  const char* const argv[] = {"holdfast-server", "--config", path.c_str()};
  auto options = read_options(3, argv);
  REQUIRE_MESSAGE(options, options.error());
  return *options;
}

}  // namespace

TEST_CASE("replace_file: writes the new bytes, keeps the permissions and leaves no other file") {
  const TempFolder folder;
  const std::string path = folder.file("f");
  write(path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  CHECK(replace_file(path, std::string("new\0bytes", 9)));
  CHECK(read(path) == std::string("new\0bytes", 9));
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(folder.files() == 1);
}

TEST_CASE("replace_file: creates a file that did not exist") {
  const TempFolder folder;
  CHECK(replace_file(folder.file("f"), ""));
  CHECK(fs::exists(folder.file("f")));
  CHECK(folder.files() == 1);
}

TEST_CASE("replace_file: reports a missing folder") {
  const TempFolder folder;
  auto result = replace_file(folder.file("missing/f"), "x");
  REQUIRE_FALSE(result);
  CHECK(result.error().find("missing") != std::string::npos);
  CHECK(folder.files() == 0);
}

TEST_CASE("replace_file: a file that it cannot replace is unchanged, and no other file remains") {
  const TempFolder folder;
  const std::string path = folder.file("f");
  fs::create_directory(path);
  write(path + "/inside", "old");
  auto result = replace_file(path, "new");
  REQUIRE_FALSE(result);
  CHECK(result.error().find("is not a regular file") != std::string::npos);
  CHECK(read(path + "/inside") == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("options: several changes apply all or none") {
  const TempFolder folder;
  const std::string path = folder.file("conf");
  write(path, "timeout = 5\n");
  Options options = options_of(path);
  CHECK(options.idle_timeout_s == 5);
  const auto refused = change_options(options, {{"timeout", "6"}, {"maxclients", "x"}});
  REQUIRE(refused);
  CHECK(refused->name == "maxclients");
  CHECK(options.idle_timeout_s == 5);
  CHECK_FALSE(change_options(options, {{"timeout", "6"}, {"maxclients", "7"}}));
  CHECK(options.idle_timeout_s == 6);
  CHECK(options.maxclients == 7);
}

TEST_CASE("options: a text that the row rejects changes nothing") {
  Options options;
  options.maxclients = 3;
  const Row& row = *find_row("maxclients");
  for (const char* text : {"", "0", "x", "1.5", "-1", "1048577", "99999999999999999999"}) {
    CHECK_FALSE(assign(row, text, options));
  }
  CHECK(options.maxclients == 3);
  CHECK(assign(row, "1", options));
  CHECK(assign(row, "1048576", options));
  CHECK(shown(row, options) == "1048576");
}

TEST_CASE("options: each row accepts its own default") {
  for (const Row& row : option_rows()) {
    Options options;
    CHECK_MESSAGE(assign(row, row.fallback, options), row.name);
    CHECK(find_row(row.name) == &row);
  }
  CHECK(find_row("nosuch") == nullptr);
}

TEST_CASE("options: each old name belongs to an option, and no option or other old name equals it") {
  std::set<std::string_view> names;
  for (const Row& row : option_rows()) CHECK_MESSAGE(names.insert(row.name).second, row.name);
  const std::set<std::string_view> present = names;
  for (const Alias& alias : option_aliases()) {
    CAPTURE(alias.old_name);
    CHECK(names.insert(alias.old_name).second);
    CHECK(present.contains(alias.name));
    CHECK(find_row(alias.old_name) == find_row(alias.name));
  }
  CHECK(find_row("lua-time-limit") == find_row("busy-reply-threshold"));
}

TEST_CASE("options: a second line of an option is an error, also if one has the old name") {
  const TempFolder folder;
  const std::string path = folder.file("conf");
  const char* const argv[] = {"holdfast-server", "--config", path.c_str()};
  for (const auto& [first, second] : {std::pair{"max-owner", "max-owner-size"},
                                      {"max-owner-size", "max-owner"},
                                      {"max-owner", "max-owner"}}) {
    write(path, fmt::format("{} = 7\n{} = 8\n", first, second));
    const std::vector<std::string> expected = {
        fmt::format("{}: line 2: {}: line 1 sets it too; remove one of them", path, second)};
    CHECK(read_all_options(3, argv).errors == expected);
  }
}

TEST_CASE("options: two values by the two names of an option are a duplicate in one CONFIG SET") {
  Options options;
  const auto refused = change_options(options, {{"max-owner-size", "7"}, {"max-owner", "8"}});
  REQUIRE(refused);
  CHECK(refused->name == "max-owner");
  CHECK(refused->why == "duplicate parameter");
}

TEST_CASE("options: settings of Redis with one value accept this value, and CONFIG GET shows them") {
  Options options;
  CHECK_FALSE(change_options(options, {{"maxmemory-policy", "noeviction"}, {"replica-read-only", "yes"}}));
  const auto why = [&](const char* name, const char* value) {
    const auto refused = change_options(options, {{name, value}});
    return refused ? refused->why : "accepted";
  };
  CHECK(why("maxmemory-policy", "allkeys-lru") == "the only value is noeviction");
  CHECK(why("databases", "16") == "can't set immutable config");
  CHECK(why("dbfilename", "dump.rdb") == "can't set protected config");
  CHECK(why("nosuch", "1") == "");  // unknown
  options.compress = "no";
  CHECK(fixed_settings(options)[1] == std::pair<std::string, std::string>("dbfilename", "dump.rdb"));
  options.compress = "yes";
  CHECK(fixed_settings(options)[1].second == "dump.rdb.gz");
}

TEST_CASE("options: slowlog-log-slower-than may be -1") {
  Options options;
  const Row& row = *find_row("slowlog-log-slower-than");
  CHECK(assign(row, "-1", options));
  CHECK(shown(row, options) == "-1");
  CHECK(engine_config(options).slowlog_us == -1);
  CHECK(assign(row, "0", options));
  CHECK(engine_config(options).slowlog_us == 0);
  for (const char* text : {"-2", "2147483648", ""}) CHECK_FALSE(assign(row, text, options));
  CHECK(refusal(row, "-2") == "argument must be between -1 and 2147483647 inclusive");
}

TEST_CASE("options: sizes accept the units of Redis") {
  Options options;
  const Row& row = *find_row("maxmemory");
  const std::pair<const char*, uint64_t> sizes[] = {{"7", 7},           {"1b", 1},         {"1k", 1000},
                                                    {"1KB", 1024},      {"1m", 1000000},   {"1mb", 1048576},
                                                    {"1g", 1000000000}, {"1gB", 1U << 30U}};
  for (const auto& [text, bytes] : sizes) {
    CHECK(assign(row, text, options));
    CHECK(options.memory_bytes == bytes);
  }
  for (const char* text : {"", "k", "1t", "1 k", "20000000000gb"}) CHECK_FALSE(assign(row, text, options));
}

TEST_CASE("CONFIG REWRITE: keeps comments and order, writes the present values, appends new options") {
  const TempFolder folder;
  const std::string path = folder.file("conf");
  write(path, "# first\n\nmaxclients = 50\n# between\ntimeout = 5\n# last\n");
  Options options = options_of(path);
  CHECK_FALSE(change_options(options, {{"timeout", "9"}, {"slowlog-max-len", "3"}}));
  REQUIRE(rewrite_config_file(options, {}));
  const std::string text = read(path);
  const size_t first = text.find("# first");
  const size_t clients = text.find("maxclients");
  const size_t between = text.find("# between");
  const size_t timeout = text.find("timeout");
  const size_t last = text.find("# last");
  REQUIRE(last != std::string::npos);
  CHECK((first < clients && clients < between && between < timeout && timeout < last));
  CHECK(text.find("slowlog-max-len") != std::string::npos);
  CHECK(text.find("loglevel") == std::string::npos);  // still has its default
  const Options again = options_of(path);
  CHECK(again.maxclients == 50);
  CHECK(again.idle_timeout_s == 9);
  CHECK(again.slowlog_entries == 3);
  CHECK(folder.files() == 1);
}

TEST_CASE("CONFIG REWRITE: a line with an old name gets the name, and one line of an option stays") {
  const TempFolder folder;
  const std::string path = folder.file("conf");
  write(path, "max-owner = 8\njournal-max = 1mb\n");
  const Options options = options_of(path);
  write(path, "# first\nmax-owner = 7\n# between\nmax-owner-size = 8\njournal-max = 1mb\n");
  REQUIRE(rewrite_config_file(options, {}));
  CHECK(read(path) == "# first\n# between\nmax-owner-size = 8\njournal-max-size = 1mb\n");
}

TEST_CASE("CONFIG REWRITE: changes only the values that changed, and keeps blanks and comments of a line") {
  const TempFolder folder;
  const std::string path = folder.file("conf");
  write(path,
        "\ttimeout=5\t# seconds\n\n  max-owner =  1kb # bytes\r\n#maxclients = 10000\n"
        "save = 60 1 # often\nrequirepass = a#b\nlogfile =# standard output\nunixsocket=\nport = auto\n"
        "bind = ::1\nbind = 127.0.0.1\n");
  Options options = options_of(path);
  CHECK_FALSE(change_options(
      options,
      {{"timeout", "9"}, {"maxclients", "7"}, {"save", ""}, {"requirepass", "c#d"}, {"maxmemory", "1gb"}}));
  REQUIRE(rewrite_config_file(options, {}));
  const std::string changed =
      "\ttimeout=9\t# seconds\n\n  max-owner-size =  1kb # bytes\r\n#maxclients = 10000\n"
      "save =  # often\nrequirepass = c#d\nlogfile =# standard output\nunixsocket=\nport = auto\n"
      "bind = ::1\nbind = 127.0.0.1\n";
  const std::string added = "\n# Added by CONFIG REWRITE\nmaxclients = 7\nmaxmemory = 1073741824\n";
  CHECK(read(path) == changed + added);
  CHECK_FALSE(change_options(options, {{"save", "60 2"}, {"slowlog-max-len", "3"}}));
  REQUIRE(rewrite_config_file(options, {}));
  CHECK(read(path).find("save = 60 2  # often\n") != std::string::npos);
  CHECK(read(path).ends_with(added + "slowlog-max-len = 3\n"));
  CHECK(options_of(path).save == "60 2");
}

TEST_CASE("CONFIG REWRITE: each user keeps its line, removed users disappear, new users are appended") {
  const TempFolder folder;
  const std::string path = folder.file("conf");
  write(path, "# a\nuser = a on >x\nuser = a on >y\n# b\nuser = b off\ntimeout = 5\nuser = c off\n");
  REQUIRE(rewrite_config_file(options_of(path), {"a on #1", "c on", "d off"}));
  CHECK(read(path) ==
        "# a\nuser = a on #1\n# b\ntimeout = 5\nuser = c on\n\n# Added by CONFIG REWRITE\nuser = d off\n");
}

TEST_CASE("CONFIG REWRITE: of several lines only the last stays, with the value of the command line") {
  const TempFolder folder;
  const std::string path = folder.file("conf");
  write(path, "timeout = 6\n");
  const char* const argv[] = {"holdfast-server", "--config",   path.c_str(), "--bind",
                              "127.0.0.2",       "--tls-port", "auto"};
  auto options = read_options(7, argv);
  REQUIRE(options);
  write(path, "bind = ::1\ntimeout = 5\nbind = 127.0.0.1\ntimeout = 6 # last\n");
  REQUIRE(rewrite_config_file(*options, {}));
  CHECK(read(path) ==
        "bind = 127.0.0.2\ntimeout = 6 # last\n\n# Added by CONFIG REWRITE\ntls-port = auto\n");
}

TEST_CASE("CONFIG REWRITE: a second run changes nothing") {
  const TempFolder folder;
  const std::string path = folder.file("conf");
  write(path, "timeout = 5\n");
  Options options = options_of(path);
  CHECK_FALSE(change_options(options, {{"notify-keyspace-events", "KEA"}}));
  REQUIRE(rewrite_config_file(options, {}));
  const std::string text = read(path);
  REQUIRE(rewrite_config_file(options_of(path), {}));
  CHECK(read(path) == text);
}

TEST_CASE("CONFIG REWRITE: reports a missing file name and a removed file") {
  Options options;
  CHECK(rewrite_config_file(options, {}).error() == "The server is running without a config file");
  const TempFolder folder;
  options.config_file = folder.file("gone");
  auto result = rewrite_config_file(options, {});
  REQUIRE_FALSE(result);
  CHECK(result.error().find("cannot read") != std::string::npos);
  CHECK(folder.files() == 0);
}

TEST_CASE("options: each wrong line of the file is an error with its number") {
  const TempFolder folder;
  const std::string path = folder.file("f");
  write(path,
        "# first\nport = x\nprot = 1\n[general]\nlogfile = \"/var/log\"\nmaxclients = 0\nmaxclients = 5\n"
        "timeout 5\nuser = a on\naclfile = b\ntls-port = 7379\nlease-memory = 1\nmax-ended-leases = 1\n"
        "bind = ::1\nbind = ::1\nuser = b on\nrequirepass = secret # of all\n");
  const char* const argv[] = {"holdfast-server", "--config", path.c_str(), "--timeout", "-1"};
  const std::string at = path + ": line ";
  const std::vector<std::string> expected = {
      at + "2: port: expected a number from 0 to 65535, or auto, got 'x'",
      at + "3: unrecognised option 'prot'; see --help",
      at + "4: no =; write name = value; see --help",
      at + "5: logfile: expected text without # or line breaks, and without blanks or quotation marks "
           "around "
           "it, got '\"/var/log\"'",
      at + "6: maxclients: expected a number from 1 to 1048576, got '0'",
      at + "8: no =; write name = value; see --help",
      at + "13: max-ended-leases: line 12 sets it too; remove one of them",
      at + "17: requirepass: expected text without line breaks, and without blanks at its ends or before a "
           "#",
      "--timeout: expected a number from 0 to 2147483647, got '-1'",
      "the options user and aclfile cannot be used together; remove one of them",
      "port and tls-port are both 7379; choose another port for one of them"};
  CHECK(read_all_options(5, argv).errors == expected);
}

TEST_CASE("options: a setting without effect, and one that contradicts another, are errors") {
  const auto error_of = [](std::vector<const char*> argv) {
    argv.insert(argv.begin(), "holdfast-server");
    const std::vector<std::string> errors =
        read_all_options(static_cast<int>(argv.size()), argv.data()).errors;
    return errors.empty() ? "" : errors.front();
  };
  const std::string http =
      "http-bind and http-tls have no effect without http-port; set it, or remove them";
  CHECK(error_of({"--http-bind", "::1"}) == http);
  CHECK(error_of({"--http-tls", "yes"}) == http);
  CHECK(error_of({"--http-bind", "::1", "--http-tls", "yes", "--http-port", "auto"}).empty());
  CHECK(error_of({"--http-tls", "yes", "--http-port", "1"}).empty());
  CHECK(error_of({"--unixsocketperm", "700"}).starts_with("unixsocketperm has no effect"));
  CHECK(error_of({"--unixsocketperm", "700", "--unixsocket", "/s"}).empty());
  CHECK(
      error_of({"--log-format", "journald", "--logfile", "/l"}).starts_with("log-format journald writes"));
  CHECK(error_of({"--log-format", "journald"}).empty());
  Options options;
  options.logfile = "/l";
  const auto refused = change_options(options, {{"timeout", "1"}, {"log-format", "journald"}});
  REQUIRE(refused);
  CHECK(refused->why.starts_with("log-format journald writes no time"));
  CHECK(options.idle_timeout_s == 0);
}

TEST_CASE(
    "--print-config: has each option with its help; without the comment signs it is the default file") {
  const char* const plain[] = {"holdfast-server", "--print-config"};
  const ReadOptions printed = read_all_options(2, plain);
  REQUIRE(printed.errors.empty());
  const TempFolder folder;
  const std::string path = folder.file("f");
  write(path, *printed.options.answer);
  CHECK(rewrite_config_file(options_of(path), {}));
  CHECK(read(path) == *printed.options.answer);  // each line is a comment, and each value the default
  std::string uncommented;
  std::istringstream lines(*printed.options.answer);
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= 100);
    const bool option =
        line.starts_with("#") && line.find_first_of(" #", 1) != 1 && !line.starts_with("#user");
    uncommented += (option ? line.substr(1) : line) + "\n";
  }
  write(path, uncommented);
  const Options all = options_of(path);
  for (const Row& row : option_rows()) {
    CHECK_MESSAGE(printed.options.answer->find(fmt::format("\n#{} = {}\n", row.name, row.fallback)) !=
                      std::string::npos,
                  row.name);
    CHECK_MESSAGE(shown(row, all) == shown(row, printed.options), row.name);
  }
}

TEST_CASE("--print-config: sets the options that the command line and the file set") {
  const char* const argv[] = {"holdfast-server", "--print-config", "--dir",  "/d",    "--port", "auto",
                              "--user",          "a on >b",        "--user", "c off", "--save", ""};
  const ReadOptions printed = read_all_options(12, argv);
  REQUIRE(printed.errors.empty());
  const TempFolder folder;
  const std::string path = folder.file("f");
  write(path, *printed.options.answer);
  const Options read_again = options_of(path);
  CHECK(read_again.dir == "/d");
  CHECK(read_again.any_port);
  CHECK(read_again.users == "a on >b\nc off");
  CHECK(read_again.save.empty());
}

TEST_CASE("options: an unknown name that looks like a format placeholder is rejected as any other") {
  for (const char* word : {"--%canonical_option%", "-%canonical_option%", "--x=%original_token%"}) {
    const char* const argv[] = {"holdfast-server", word};
    auto options = read_options(2, argv);
    REQUIRE_FALSE(options);
    CHECK(options.error().starts_with("unrecognised option"));
  }
  const TempFolder folder;
  const std::string path = folder.file("f");
  const char* const argv[] = {"holdfast-server", "--config", path.c_str()};
  for (const char* line : {"a%canonical_option% = 1", "%invalid_line%", "  x = %original_token%"}) {
    write(path, line);
    CHECK_FALSE(read_options(3, argv));
  }
  write(path, "# 10% or 20%\nlogfile = %a%b%\n");
  CHECK(options_of(path).logfile == "%a%b%");
}

}  // namespace holdfast

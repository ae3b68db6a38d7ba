// Errors in the server's options are reported without the passwords among them.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "files/temp_folder.h"
#include "io/config/options.h"

namespace holdfast {
namespace {

std::string refusal(std::vector<const char*> words) {
  words.insert(words.begin(), "holdfast-server");
  const auto options = read_options(static_cast<int>(words.size()), words.data());
  return options ? "taken" : options.error();
}

// Returns the arguments of a process after hide_secrets(), separated by blanks.
std::string hidden(std::vector<std::string> words) {
  words.insert(words.begin(), "holdfast-server");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  hide_secrets(static_cast<int>(argv.size()), argv.data());
  std::string all;
  for (size_t i = 1; i < words.size(); ++i) all += (i > 1 ? " " : "") + words[i];
  return all;
}

}  // namespace

TEST_CASE("options: no error shows a password of the command line") {
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{"--requirepass", " secret"},
                                             {"--requirepas=secret"},
                                             {"--requirepas", "secret"},
                                             {"--requirepass", "a", "secret"},
                                             {"--tls-key-file-pass", "secret\n"},
                                             {"--user", "a on >b", "secret"},
                                             {"--x%y%=secret"},
                                             {"-psecret"}}) {
    CAPTURE(words.front());
    const std::string why = refusal(words);
    CHECK(why != "taken");
    CHECK_MESSAGE(why.find("secret") == std::string::npos, why);
  }
  CHECK(refusal({"--requirepas=secret"}) == "unrecognised option '--requirepas'; see --help");
  CHECK(refusal({"--port", "1", "more"}).find("'more'") != std::string::npos);
  CHECK(refusal({"--port", "x"}).find("got 'x'") != std::string::npos);
}

TEST_CASE("options: no error shows a password of the config file, also one without a =") {
  const TempFolder folder;
  const std::string path = folder.file("f");
  for (const char* text : {"requirepass secret", "requirepas = secret", "port = 1\nsecret", "x%y% = secret",
                           "  requirepass secret # = 1", "user alice on >secret"}) {
    CAPTURE(text);
    std::ofstream(path) << text << "\n";
    const std::string why = refusal({"--config", path.c_str()});
    CHECK(why != "taken");
    CHECK_MESSAGE(why.find("secret") == std::string::npos, why);
  }
  std::ofstream(path) << "port = 1\nrequirepass secret\n";
  CHECK(refusal({"--config", path.c_str()}).find("line 2: no =") != std::string::npos);
}

TEST_CASE("options: passwords are overwritten in the arguments of the process, other arguments are not") {
  CHECK(hidden({"--requirepass", "secret", "--port", "7"}) == "--requirepass ****** --port 7");
  CHECK(hidden({"--requirepass=secret", "--dir", "d"}) == "--requirepass=****** --dir d");
  CHECK(hidden({"--user", "a on >b", "--tls-key-file-pass", "x"}) ==
        "--user ******* --tls-key-file-pass *");
  CHECK(hidden({"--requirepass"}) == "--requirepass");
  CHECK(hidden({"--logfile", "secret"}) == "--logfile secret");
}

}  // namespace holdfast

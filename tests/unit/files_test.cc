// The file layer works on a real folder as documented; replace_file() uses it.
#include "io/os/files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "files/temp_folder.h"
#include "io/os/replace_file.h"

namespace holdfast {

namespace {

namespace fs = std::filesystem;

template <class T>
T good(Result<T> result) {
  if (!result) FAIL(result.error());
  return std::move(*result);
}

template <class T>
std::string error_of(Result<T> result) {
  return result ? "" : result.error();
}

std::unique_ptr<Files> open_files(const TempFolder& folder) {
  return good(open_folder(folder.path().string()));
}

void append(Files& files, const std::string& name, std::string_view bytes) {
  REQUIRE(write_all(*good(files.append(name)), bytes) == 0);
}

mode_t mode_of(const std::string& path) {
  struct stat facts {};
  REQUIRE(stat(path.c_str(), &facts) == 0);
  return facts.st_mode & 07777U;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("files: appended bytes stand behind the content that existed") {
  const TempFolder folder;
  const auto files = open_files(folder);
  append(*files, "journal", "one ");
  const auto file = good(files->append("journal"));
  const Written written = file->write("two");
  CHECK(written.bytes == 3);
  CHECK(written.error == 0);
  CHECK(file->sync() == 0);
  CHECK(good(file->size()) == 7);
  CHECK(good(files->read("journal")) == "one two");
}

TEST_CASE("files: a read returns the bytes from an offset on, and nothing at the end") {
  const TempFolder folder;
  const auto files = open_files(folder);
  append(*files, "f", "0123456789");
  const auto file = good(files->open("f"));
  char bytes[4];
  CHECK(good(file->read(3, bytes)) == 4);
  CHECK(std::string_view(bytes, 4) == "3456");
  CHECK(good(file->read(8, bytes)) == 2);
  CHECK(good(file->read(10, bytes)) == 0);
  CHECK(good(file->read(1000, bytes)) == 0);
  CHECK(file->write("x").error == EBADF);
}

TEST_CASE("files: bytes written after a truncation stand behind the rest") {
  const TempFolder folder;
  const auto files = open_files(folder);
  const auto file = good(files->append("f"));
  REQUIRE(write_all(*file, "0123456789") == 0);
  CHECK(file->truncate(4) == 0);
  REQUIRE(write_all(*file, "x") == 0);
  CHECK(good(files->read("f")) == "0123x");
}

TEST_CASE("files: create() empties a file; a replacement gets the permissions of the old file") {
  const TempFolder folder;
  const auto files = open_files(folder);
  append(*files, "old", "secret");
  REQUIRE(chmod(folder.file("old").c_str(), 0600) == 0);
  good(files->create("new", "old"));
  CHECK(mode_of(folder.file("new")) == 0600);
  good(files->create("old", "nothing"));
  CHECK(good(files->read("old")).empty());
}

TEST_CASE("files: names are created, renamed, removed and listed in order") {
  const TempFolder folder;
  const auto files = open_files(folder);
  append(*files, "b", "of b");
  append(*files, "a", "of a");
  append(*files, "c", "");
  CHECK(good(files->list()) == Names{"a", "b", "c"});
  good(files->rename("a", "b"));
  good(files->remove("c"));
  good(files->remove("c"));
  good(files->sync_folder());
  CHECK(good(files->list()) == Names{"b"});
  CHECK(good(files->list()) == Names{"b"});
  CHECK(good(files->read("b")) == "of a");
  CHECK(good(files->exists("b")));
  CHECK(!good(files->exists("a")));
}

TEST_CASE("files: an error names the operation, the file and the reason") {
  const TempFolder folder;
  const auto files = open_files(folder);
  CHECK(error_of(files->read("f")) == "cannot open " + folder.file("f") + ": No such file or directory");
  CHECK(error_of(files->rename("f", "g")) ==
        "cannot rename " + folder.file("f") + ": No such file or directory");
  CHECK(error_of(open_folder(folder.file("f"))) ==
        "cannot open " + folder.file("f") + ": No such file or directory");
  fs::create_directory(folder.file("d"));
  CHECK(error_of(files->append("d")) == "cannot open " + folder.file("d") + ": Is a directory");
  CHECK(error_of(files->remove("d")) == "cannot remove " + folder.file("d") + ": Is a directory");
}

TEST_CASE("files: a full disk is an error of the write") {
  const TempFolder folder;
  const auto files = open_files(folder);
  fs::create_symlink("/dev/full", folder.file("full"));
  const auto file = good(files->append("full"));
  CHECK(file->write("x").error == ENOSPC);
  CHECK(write_all(*file, "x") == ENOSPC);
}

TEST_CASE("files: a sync of a removed file fails for good") {
  const TempFolder folder;
  const auto files = open_files(folder);
  const auto file = good(files->append("f"));
  CHECK(file->sync() == 0);
  fs::remove(folder.file("f"));
  CHECK(write_all(*file, "lost") == 0);
  CHECK(file->sync() == ENOENT);
  CHECK(file->sync() == ENOENT);
}

TEST_CASE("files: replace() puts the new bytes in the place of the old, and leaves no other file") {
  const TempFolder folder;
  const auto files = open_files(folder);
  good(files->replace("meta", "first"));
  CHECK(good(files->read("meta")) == "first");
  REQUIRE(chmod(folder.file("meta").c_str(), 0640) == 0);
  append(*files, "meta.tmp", "left by a crash");
  good(files->replace("meta", std::string(100'000, 'x')));
  CHECK(good(files->read("meta")) == std::string(100'000, 'x'));
  CHECK(mode_of(folder.file("meta")) == 0640);
  CHECK(good(files->list()) == Names{"meta"});
}

TEST_CASE("files: a replace() that fails leaves the old file and no other") {
  const TempFolder folder;
  const auto files = open_files(folder);
  fs::create_directory(folder.file("meta"));
  CHECK(error_of(files->replace("meta", "new")) ==
        "cannot rename " + folder.file("meta.tmp") + ": Is a directory");
  CHECK(good(files->list()) == Names{"meta"});
  append(*files, "other", "old");
  fs::create_directory(folder.file("other.tmp"));
  CHECK(error_of(files->replace("other", "new")) ==
        "cannot create " + folder.file("other.tmp") + ": Is a directory");
  CHECK(good(files->read("other")) == "old");
}

TEST_CASE("files: replace_file() keeps permissions and leaves no other file, wherever the file is") {
  const TempFolder folder;
  good(replace_file(folder.file("conf"), "port 1"));
  REQUIRE(chmod(folder.file("conf").c_str(), 0600) == 0);
  good(replace_file(folder.file("conf"), "port 2"));
  const auto files = open_files(folder);
  CHECK(good(files->read("conf")) == "port 2");
  CHECK(mode_of(folder.file("conf")) == 0600);
  CHECK(good(files->list()) == Names{"conf"});
  CHECK(error_of(replace_file(folder.file("none/conf"), "")) ==
        "cannot open " + folder.file("none") + ": No such file or directory");
}

TEST_CASE("files: a second server in the folder is rejected with the first one's pid, until that exits") {
  const TempFolder folder;
  const auto second = open_files(folder);
  const std::string refusal = "the folder " + folder.path().string() + " is in use by process " +
                              std::to_string(getpid()) + "; each server needs its own";
  {
    const auto first = open_files(folder);
    good(first->lock());
    good(first->lock());
    CHECK(error_of(second->lock()) == refusal);
    CHECK(error_of(second->lock()) == refusal);
  }
  good(second->lock());
  CHECK(error_of(open_files(folder)->lock()) == refusal);
}

TEST_CASE("files: the lock of a killed process is free at once") {
  const TempFolder folder;
  const auto files = open_files(folder);
  int locked[2];
  REQUIRE(pipe2(locked, O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const char done = error_of(files->lock()).empty() ? 'y' : 'n';
    if (write(locked[1], &done, 1) == 1) pause();
    _exit(1);
  }
  char done = 0;
  REQUIRE(read(locked[0], &done, 1) == 1);
  CHECK(done == 'y');
  CHECK(error_of(files->lock()).find("by process " + std::to_string(child) + ";") != std::string::npos);
  REQUIRE(kill(child, SIGKILL) == 0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  good(files->lock());
  close(locked[0]);
  close(locked[1]);
}

TEST_CASE("files: a lock without its owner's pid is rejected as well") {
  const TempFolder folder;
  const auto first = open_files(folder);
  good(first->lock());
  fs::resize_file(folder.file("lock"), 0);
  CHECK(error_of(open_files(folder)->lock()).find("in use by another process;") != std::string::npos);
}

TEST_CASE("files: a removed folder is detected, and its replacement is used") {
  const TempFolder folder;
  const std::string path = folder.file("data");
  fs::create_directory(path);
  const auto files = good(open_folder(path));
  good(files->lock());
  const auto file = good(files->append("f"));
  CHECK(!files->folder_removed());
  fs::remove_all(path);
  CHECK(files->folder_removed());
  CHECK(file->sync() == ENOENT);
  CHECK(error_of(files->append("f")) == "cannot open " + path + "/f: No such file or directory");
  CHECK(error_of(files->reopen_folder()) == "cannot open " + path + ": No such file or directory");
  fs::create_directory(path);
  CHECK(files->folder_removed());
  good(files->reopen_folder());
  CHECK(!files->folder_removed());
  good(files->lock());
  good(files->replace("f", "new"));
  CHECK(good(files->list()) == Names{"f", "lock"});
}

TEST_CASE("files: a moved folder is still written, and its path is reported to name another") {
  const TempFolder folder;
  fs::create_directory(folder.file("data"));
  const auto files = good(open_folder(folder.file("data")));
  CHECK(!files->folder_removed());
  fs::rename(folder.file("data"), folder.file("moved"));
  CHECK(files->folder_removed());
  fs::create_directory(folder.file("data"));
  append(*files, "f", "here");
  CHECK(files->folder_removed());
  CHECK(fs::exists(folder.file("moved/f")));
  CHECK(fs::is_empty(folder.file("data")));
  fs::remove(folder.file("data"));
  fs::create_directory_symlink(folder.file("moved"), folder.file("data"));
  CHECK(!files->folder_removed());  // the path names that folder again
}

}  // namespace holdfast

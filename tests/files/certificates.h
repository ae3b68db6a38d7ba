// Certificates for tests, made by the openssl command in a folder of their own: NAME.pem and NAME.key. All
// are valid for one day, for localhost and 127.0.0.1.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "files/temp_folder.h"

namespace holdfast {

class Certificates {
 public:
  Certificates() { authority("ca"); }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string pem(const std::string& name) const { return path(name + ".pem"); }
  std::string key(const std::string& name) const { return path(name + ".key"); }

  void authority(const std::string& name) {
    run("req -x509 " + new_key(name) + " -days 1 -subj /CN=" + name + " -out " + pem(name));
  }
  // Signs a certificate by an authority that exists already. With -1 days it expired yesterday.
  void issue(const std::string& name, const std::string& by = "ca", int days = 1) {
    const std::string request = path(name + ".csr");
    run("req " + new_key(name) + " -subj /CN=localhost -addext " + kNames + " -out " + request);
    run("x509 -req -copy_extensions copy -in " + request + " -days " + std::to_string(days) + " -CA " +
        pem(by) + " -CAkey " + key(by) + " -CAcreateserial -out " + pem(name));
  }
  // Calls the openssl command.
  void run(const std::string& arguments) {
    const std::string command = "openssl " + arguments + " >" + path("openssl.log") + " 2>&1";
    INFO(command);
    REQUIRE(std::system(command.c_str()) == 0);
  }

 private:
  static constexpr const char* kNames = "subjectAltName=DNS:localhost,IP:127.0.0.1";

  std::string new_key(const std::string& name) const {
    return "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " + key(name);
  }

  TempFolder folder_;
};

}  // namespace holdfast

#!/bin/sh
# Fetches the rivals that `make bench` measures from Debian to build/bench/rivals, without installing them:
# that would start etcd as a service. What is there is not fetched again, what Debian lacks is left out.
set -eu
rivals=$PWD/build/bench/rivals

# As whoever calls: apt's own user, which root's apt-get would else be, may not be let into the folder.
get() {
  apt-get -qq -o APT::Sandbox::User=root "$@" 2>"$rivals/log"
}

# With new lists, for where the system's are old or missing; in a folder of their own that needs no root.
get_anew() {
  mkdir -p "$rivals/lists/partial" "$rivals/cache/archives/partial"
  set -- -o Dir::State::Lists="$rivals/lists" -o Dir::Cache="$rivals/cache"
  get "$@" update && get "$@" download $packages
}

# $1: its name; then the packages that have it.
fetch() {
  name=$1
  shift
  packages=$*
  [ -d "$rivals/$name" ] && return
  echo "fetching $name: $packages"
  rm -rf "$rivals/$name.new"
  mkdir -p "$rivals/$name.new"
  cd "$rivals/$name.new"
  if get download $packages || get_anew; then
    for package in *.deb; do
      dpkg-deb -x "$package" .
    done
    rm ./*.deb
    mv "$rivals/$name.new" "$rivals/$name"
  else
    echo "without $name: $(tail -n 1 "$rivals/log")"
    rm -rf "$rivals/$name.new"
  fi
}

mkdir -p "$rivals"
fetch etcd etcd-server
fetch zookeeper libzookeeper-java libslf4j-java libdropwizard-metrics-java libsnappy-java
rm -rf "$rivals/lists" "$rivals/cache" "$rivals/log"

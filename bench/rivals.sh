#!/bin/sh
# Fetches the rivals of `make bench` from Debian to build/bench/rivals. It does not install them, as that
# would start etcd as a service. It skips rivals that are already there, and rivals that Debian lacks.
set -eu
rivals=$PWD/build/bench/rivals

# Runs apt-get as the caller. By default root's apt-get uses its own user, which may lack access to the
# folder.
get() {
  apt-get -qq -o APT::Sandbox::User=root "$@" 2>"$rivals/log"
}

# Downloads with new package lists, for a system whose lists are old or missing. The lists have their own
# folder, so that this needs no root.
get_anew() {
  mkdir -p "$rivals/lists/partial" "$rivals/cache/archives/partial"
  set -- -o Dir::State::Lists="$rivals/lists" -o Dir::Cache="$rivals/cache"
  get "$@" update && get "$@" download $packages
}

# $1: the name of the rival; the other arguments: the packages that contain it.
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

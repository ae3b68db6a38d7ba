#!/bin/sh
# Writes users.acl, app-password and monitoring/password, with random passwords.
set -eu
cd "$(dirname "$0")"
if [ -e users.acl ]; then
  echo "passwords.sh: users.acl exists; remove it to make new passwords" >&2
  exit 1
fi
umask 077
password() { od -An -v -N24 -tx1 /dev/urandom | tr -d ' \n'; }
password >app-password
password >monitoring/password
sed "s/APP-PASSWORD/$(cat app-password)/; s/MONITOR-PASSWORD/$(cat monitoring/password)/; /^#/d" \
  users.acl.example >users.acl

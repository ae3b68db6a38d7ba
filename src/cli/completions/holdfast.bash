# Completes the command lines of `holdfast` and `holdfast-server` in bash. The programs themselves know their
# verbs, options and values.
_holdfast() {
  local words line cur i
  local -a lines
  read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
  [[ ${COMP_LINE:0:COMP_POINT} != *[[:blank:]] ]] || words+=('')
  cur=${words[-1]}
  COMPREPLY=()
  mapfile -t lines < <("${words[0]/#\~/$HOME}" __complete "${words[@]:1}" 2>/dev/null)
  case ${lines[0]} in
    :files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return ;;
    ':command '*)
      for ((i = 2; i < COMP_CWORD; ++i)); do
        if [ "${COMP_WORDS[i]}" = -- ]; then
          declare -F _command_offset >/dev/null && _command_offset $((i + 1))
          return
        fi
      done
      return ;;
  esac
  # bash replaces only the text behind the last : or = of the word.
  local kept=${cur%"${cur##*[:=]}"}
  for line in "${lines[@]}"; do
    line=${line%%$'\t'*}
    COMPREPLY+=("$(printf %q "${line#"$kept"}")")
  done
}
complete -o bashdefault -F _holdfast holdfast holdfast-server

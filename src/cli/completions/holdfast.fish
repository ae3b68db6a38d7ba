# Completes the command lines of `holdfast` and `holdfast-server` in fish. The programs themselves know their
# verbs, options and values.
function __holdfast_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test "$lines[1]" = :files
        __fish_complete_path (commandline -ct)
    else if string match -q ':command *' -- $lines[1]
        __fish_complete_subcommand --fcs-skip=(string replace ':command ' '' -- $lines[1])
    else
        printf '%s\n' $lines
    end
end
complete -c holdfast -c holdfast-server -f -a '(__holdfast_complete)'

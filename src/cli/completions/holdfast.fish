# Completes the command line of `holdfast` in fish. The program itself knows its verbs, options and values.
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
complete -c holdfast -f -a '(__holdfast_complete)'

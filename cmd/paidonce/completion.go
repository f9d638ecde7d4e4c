package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is the text below the flags.
func (completionCmd) Help() string {
	return `Examples:

    source <(paidonce completion bash)
    paidonce completion zsh > "${fpath[1]}/_paidonce"
    paidonce completion fish > ~/.config/fish/completions/paidonce.fish`
}

// Each script asks the program itself what can follow, so it never grows old.
var completions = map[string]string{
	"bash": `_paidonce() {
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "$(paidonce __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _paidonce paidonce
`,
	"zsh": `#compdef paidonce
_paidonce() {
  local -a words_
  words_=("${(@f)$(paidonce __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -a words_ || _files
}
if [ "$funcstack[1]" = "_paidonce" ]; then _paidonce "$@"; else compdef _paidonce paidonce; fi
`,
	"fish": `complete -c paidonce -f -a '(paidonce __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
}

// Run runs the command.
func (c completionCmd) Run(e *env) error {
	_, err := fmt.Fprint(e.stdout, completions[c.Shell])
	return err
}

// completeCmd prints what can stand in the place of the last word.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run runs the command.
func (c completeCmd) Run(e *env) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	last := ""
	if len(words) > 0 {
		words, last = words[:len(words)-1], words[len(words)-1]
	}
	for _, candidate := range e.candidates(words, last) {
		if strings.HasPrefix(candidate, last) {
			fmt.Fprintln(e.stdout, candidate)
		}
	}
	return nil
}

// candidates walks down the commands that were written, and says what fits: the
// values of a flag or argument that has a fixed set, subcommands, or flags.
func (e *env) candidates(words []string, last string) []string {
	node, positional := e.model.Model.Node, 0
	for i := 0; i < len(words); i++ {
		word := words[i]
		if flag := flagOf(node, word); flag != nil {
			if !flag.IsBool() && !strings.Contains(word, "=") {
				if i == len(words)-1 {
					return flag.EnumSlice()
				}
				i++ // the flag's value
			}
			continue
		}
		if child := childOf(node, word); child != nil {
			node, positional = child, 0
			continue
		}
		positional++
	}
	var out []string
	if strings.HasPrefix(last, "-") {
		for _, flag := range flagsOf(node) {
			out = append(out, "--"+flag.Name)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	for _, child := range node.Children {
		if !child.Hidden {
			out = append(out, child.Name)
		}
	}
	if positional < len(node.Positional) {
		out = append(out, node.Positional[positional].EnumSlice()...)
	}
	return out
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

func flagOf(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	if !strings.HasPrefix(word, "-") {
		return nil
	}
	for _, flag := range flagsOf(node) {
		if flag.Name == name || (flag.Short != 0 && string(flag.Short) == name) {
			return flag
		}
	}
	return nil
}

// flagsOf returns the flags that can stand after a command: its own, those
// around it, and those of the subcommand that is meant if none is named.
func flagsOf(node *kong.Node) []*kong.Flag {
	all := slices.Concat(node.AllFlags(true)...)
	if node.DefaultCmd != nil {
		all = append(all, slices.Concat(node.DefaultCmd.AllFlags(true)...)...)
	}
	return all
}

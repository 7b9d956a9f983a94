// Command gen-docs writes what comes from the code of the command line.
//
//	gen-docs DOCS                docs/reference/README.md, docs/exit-codes.md, docs/conformance.md
//	gen-docs -man DIR            manual pages
//	gen-docs -completions DIR    completion scripts of bash, zsh, fish and PowerShell
//	gen-docs -licenses FILE      the licences of the modules in the programs
//
// `make generate` writes the docs, and a test compares the committed ones. `make release` writes the others, which are
// dated $SOURCE_DATE_EPOCH, in seconds since 1970.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

func main() {
	man := flag.String("man", "", "write manual pages to this folder")
	completions := flag.String("completions", "", "write completion scripts to this folder")
	licenses := flag.String("licenses", "", "write the licences of the modules to this file")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: gen-docs DOCS | -man DIR | -completions DIR | -licenses FILE") }
	flag.Parse()
	var err error
	switch {
	case flag.NArg()+flag.NFlag() != 1:
		flag.Usage()
		os.Exit(2)
	case *man != "":
		var seconds int64
		if seconds, err = strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
			err = writeManPages(root(), *man, time.Unix(seconds, 0).UTC())
		}
	case *completions != "":
		err = writeCompletions(root(), *completions)
	case *licenses != "":
		err = writeLicenses(*licenses)
	default:
		err = write(flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen-docs:", err)
		os.Exit(1)
	}
}

// root is the command line, attached to nothing.
func root() *cobra.Command {
	return cli.Root(&session.Factory{Streams: iostreams.Plain(strings.NewReader(""), io.Discard, io.Discard)},
		cli.System{})
}

const mark = "<!-- Written by cmd/origami/gen-docs; change the code instead and run `make generate`. -->\n\n"

// write writes the generated pages.
func write(docs string) error {
	if err := os.MkdirAll(filepath.Join(docs, "reference"), 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"reference/README.md": reference(root()), "exit-codes.md": exitCodes(), "conformance.md": conformancePage(),
	} {
		if err := os.WriteFile(filepath.Join(docs, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// commands lists a command and its subcommands, as help does, without those that cobra adds.
func commands(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "completion" && sub.Name() != "help" {
			list = append(list, commands(sub)...)
		}
	}
	return list
}

func unindent(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

func exitCodes() string {
	var b strings.Builder
	b.WriteString(mark + "# Exit codes\n\nThe exit code says whose problem a failure is. Treat a code that is not " +
		"listed as a failure.\n\n")
	b.WriteString("| code | kind | meaning |\n| --- | --- | --- |\n")
	for _, c := range cli.ExitCodes() {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", c.Code, c.Name, c.Meaning)
	}
	b.WriteString("\n" + cli.HelpOnErrors + "\n")
	return b.String()
}

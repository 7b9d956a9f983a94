package server

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// A client has parameters in place of flags, and paths in place of commands, which are relative: a site may lie below a
// folder. The errors and the help of the commands are put into its words here, so that the commands need not know who
// asks.

// hintFor returns what puts an error into the words of a client who may give these parameters.
func (s *Server) hintFor(params []string) func(error) error {
	return func(err error) error {
		var d *diag.Error
		if !errors.As(err, &d) {
			return err
		}
		c := *d
		if err.Error() != d.Error() { // it says more than the diagnosis in it
			c = diag.Error{Kind: d.Kind, What: err.Error(), Err: err}
		}
		c.Where, c.What, c.Fix = assigned(c.Where, place), inWords(c.What), s.advice(c.Fix, params)
		if d.Code == diag.CodeUnknownDevice {
			return c.Also("api/v1/archs lists the devices")
		}
		return &c
	}
}

var (
	// place is a flag in the place of an error, with the value that it was given.
	place = regexp.MustCompile(`(?:^|: )(--[a-z][a-z-]* [^\s]+)`)
	// example is a list of flags with values in a piece of advice.
	example = regexp.MustCompile(`(?:as in|use) ((?:--?[a-z][a-z-]* [^\s;,]+ ?)+)`)
	// flag is a flag by itself. A name in quotes is the client's own word.
	flag    = regexp.MustCompile(`(^|[\s(])--?([a-z][a-z-]*)`)
	command = regexp.MustCompile("`origami ([a-z]+)[^`]*`")
)

// inWords writes flags as parameters.
func inWords(text string) string {
	return flag.ReplaceAllStringFunc(text, func(found string) string {
		part := flag.FindStringSubmatch(found)
		return part[1] + parameter(part[2])
	})
}

// parameter is the name of the parameter that sets a flag.
func parameter(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// assigned writes flags with values as a query does where a pattern finds them, and all others as parameters.
func assigned(text string, where *regexp.Regexp) string {
	for {
		at := where.FindStringSubmatchIndex(text)
		if at == nil {
			return inWords(text)
		}
		var query []string
		words := strings.Fields(text[at[2]:at[3]])
		for i := 0; i+1 < len(words); i += 2 {
			query = append(query, parameter(strings.TrimLeft(words[i], "-"))+"="+words[i+1])
		}
		text = text[:at[2]] + strings.Join(query, "&") + text[at[3]:]
	}
}

// advice leaves out what a client cannot do: give a flag that is no parameter, run a command that is no path.
func (s *Server) advice(text string, params []string) string {
	can := func(part string) bool {
		for _, f := range flag.FindAllStringSubmatch(part, -1) {
			if !slices.Contains(params, parameter(f[2])) {
				return false
			}
		}
		return !strings.Contains(part, "`origami ")
	}
	text = command.ReplaceAllStringFunc(text, func(found string) string {
		name := command.FindStringSubmatch(found)[1]
		if name == "arch" {
			name = "archs"
		}
		if slices.ContainsFunc(s.endpoints, func(e Endpoint) bool { return e.Name == name }) {
			return "api/v1/" + name
		}
		return found
	})
	var kept []string
	for whole := range strings.SplitSeq(text, "; ") {
		var parts []string
		for part := range strings.SplitSeq(whole, ", or ") {
			if can(part) {
				parts = append(parts, part)
			}
		}
		if len(parts) > 0 {
			kept = append(kept, strings.Join(parts, ", or "))
		}
	}
	return assigned(strings.Join(kept, "; "), example)
}

// Package info has what a host tells of a plugin. A program that answers in its own process needs no more of the host.
package info

import (
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/ladder"
)

// State says whether a plugin can be used.
type State string

// The states.
const (
	OK      State = "ok"
	Skipped State = "skipped" // left out on purpose; the reason says why
	Error   State = "error"   // tried, and failed
	Unasked State = "unasked" // not tried yet
)

// Plugin describes a plugin that was found.
type Plugin struct {
	Name, Version string
	Builtin       bool
	// Named: the user named this binary (host.Options.Plugins).
	Named bool
	// Path is the program that runs; SHA256 is its hash in hexadecimal, empty for built-ins.
	Path, SHA256 string
	// Protocols are the versions of the wire protocol that it speaks.
	Protocols []int
	// Archs are the ids of its architectures that no plugin before it provides.
	Archs []string
	// Executor: the plugin runs kernels.
	Executor bool
	State    State
	Reason   string
	// Code identifies the reason, so that a front end can add a hint.
	Code diag.Code
}

// Err returns why the plugin cannot be used, nil if it can as far as is known.
func (p *Plugin) Err() *diag.Error {
	if p.State == OK || p.State == Unasked {
		return nil
	}
	subject := p.Path
	if p.Code == diag.CodeMissingPlugin {
		subject = p.Name
	}
	return &diag.Error{Kind: diag.Plugin, Where: "plugin " + p.Name, What: p.Reason, Code: p.Code, Subject: subject}
}

// Optional is what a plugin may have beside arch.Provider. Its manifest says what it has.
type Optional interface {
	calibrate.Planner
	ladder.Provider
}

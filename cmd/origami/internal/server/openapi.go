package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/timing"
)

type object = map[string]any

const sizesUsage = "sizes in place of m, n and k: lists and ranges, as in m=1,16,64:1024,n=4096,k=4096. The answer " +
	"is a list, with an element for each of their combinations"

// choices are the values of the parameters that have few.
var choices = map[string]func() []string{
	"dtype": func() (names []string) {
		for _, t := range gemm.DTypes() {
			names = append(names, t.String())
		}
		return names
	},
	"rung":   config.Rungs,
	"timing": timing.Names,
}

// openAPI describes the endpoints. What a parameter means is the help of its flag.
func (s *Server) openAPI() object {
	common := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Register(common)
	paths := object{}
	for _, e := range s.endpoints {
		flags := e.Command(&session.Factory{}).Flags()
		var params []object
		for _, name := range e.parameters() {
			schema, usage := object{"type": "string"}, sizesUsage
			if name != sizes {
				flag := flags.Lookup(strings.ReplaceAll(name, "_", "-"))
				if flag == nil {
					flag = common.Lookup(name)
				}
				_, usage = pflag.UnquoteUsage(flag)
				schema["type"] = typeOf(flag.Value.Type())
			}
			if of, few := choices[name]; few {
				schema["enum"] = of()
			}
			params = append(params, object{"name": name, "in": "query", "description": assigned(usage, example),
				"schema": schema})
		}
		operation := object{"operationId": e.Name, "summary": e.Summary, "responses": object{
			"200": object{"description": "the answer"}, "default": object{"description": "why there is no answer"}}}
		if params != nil {
			operation["parameters"] = params
		}
		paths["/api/v1/"+e.Name] = object{"get": operation}
	}
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "origami", "version": "1",
			"license": object{"name": "Apache 2.0", "identifier": "Apache-2.0"},
			"description": "Kernel configurations for matrix multiplications, from analytical models. The answers are " +
				"those of the command line with --json; docs/json.md has their keys."},
		"servers": []object{{"url": "/"}},
		"paths":   paths,
	}
}

// typeOf is the JSON type of a kind of flag.
func typeOf(kind string) string {
	switch kind {
	case "bool":
		return "boolean"
	case "int", "SIZE":
		return "integer"
	case "NUMBER":
		return "number"
	default:
		return "string"
	}
}

// describe sends the description.
func (s *Server) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	text, err := json.MarshalIndent(s.openAPI(), "", "  ")
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	_, _ = w.Write(append(text, '\n')) // the client is gone
}

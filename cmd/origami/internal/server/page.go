package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/gemm"
)

// measured is the parameter for what a page has beside the answer that programs get.
const measured = "measured"

// page sends the page of `origami report` about the problem that its form asks for. Without a question it answers the
// one that the form opens with.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	values, err := asked(r, s.pageParams)
	var p *report.Page
	status := http.StatusOK
	switch {
	case err != nil:
		status = http.StatusBadRequest
	case values["m"]+values["groups"] != "":
		if p, err = s.built(r, values); err != nil {
			status, err = statusOf(r.Context(), err), s.failure(r.Context(), err, s.pageParams)
		}
	case len(values) == 0:
		p = s.opened(r)
	}
	if p == nil {
		p = &report.Page{Title: "origami", Lead: lead, Footer: session.Software()}
	}
	shown := *p
	shown.Form = s.form(values)
	if err != nil {
		shown.Form.Error = err.Error()
	}
	var out buffer
	if err := shown.Served(&out); err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // the client is gone
}

const lead = "Pick the kernel configuration for a matrix multiplication, and see why. Several devices are put side " +
	"by side; behind a colon they have options and numbers of their own, as in h200:clock=1.5GHz."

// opened answers the question that the form opens with, once: other sites may lead to it. It is nil if there is no
// answer, as where the device of the question is unknown: nobody asked.
func (s *Server) opened(r *http.Request) *report.Page {
	if p := s.opening.Load(); p != nil {
		return p
	}
	values := map[string]string{}
	for _, f := range s.form(nil).Fields {
		if f.Value != "" {
			values[f.Name] = f.Value
		}
	}
	p, err := s.built(r, values)
	if err != nil {
		return nil
	}
	p.Title, p.Lead = "origami", lead+" This is the answer for "+p.Title+"."
	s.opening.Store(p)
	return p
}

// built makes the page about a problem.
func (s *Server) built(r *http.Request, values map[string]string) (*report.Page, error) {
	f, err := s.factoryFor(values, s.pageParams)
	if err != nil {
		return nil, err
	}
	flags := pflag.NewFlagSet("page", pflag.ContinueOnError)
	build := s.Page(f, flags)
	if err := setFlags(flags, values); err != nil {
		return nil, err
	}
	return build(r.Context())
}

// form has the last question.
func (s *Server) form(values map[string]string) *report.Form {
	value := func(name, otherwise string) string {
		if v := values[name]; v != "" {
			return v
		}
		return otherwise
	}
	var devices, families []string
	for i := range s.archs {
		for _, d := range s.archs[i].Devices {
			devices = append(devices, d.ID)
		}
		families = append(families, s.archs[i].Kernels...)
	}
	slices.Sort(families)
	families = append([]string{""}, slices.Compact(families)...)
	first := session.ExampleDevice
	if len(s.factory.Settings.Arch) > 0 {
		first = s.factory.Settings.Arch[0]
	} else if !slices.Contains(devices, first) && len(devices) > 0 {
		first = devices[0]
	}
	var types []string
	for _, t := range gemm.DTypes() {
		types = append(types, t.String())
	}
	form := &report.Form{Fields: []report.Field{
		{Name: "arch", Label: "Devices", Value: value("arch", first),
			Hint: session.ExampleDevice + "," + session.OtherDevice, Suggestions: devices},
		{Name: "m", Label: "M", Value: value("m", "4096"), Number: true},
		{Name: "n", Label: "N", Value: value("n", "4096"), Number: true},
		{Name: "k", Label: "K", Value: value("k", "4096"), Number: true},
		{Name: "batch", Label: "Batch", Value: value("batch", ""), Hint: "1", Number: true},
		{Name: "dtype", Label: "Type", Value: value("dtype", s.factory.Settings.DType), Options: types},
		{Name: "kernel", Label: "Kernel family", Value: value("kernel", s.factory.Settings.Kernel),
			Hint: "the device's first", Options: families},
		{Name: "trans_a", Label: "A transposed", Value: values["trans_a"], Flag: true},
		{Name: "trans_b", Label: "B transposed", Value: values["trans_b"], Flag: true},
		{Name: measured, Label: "Show measurements", Value: values[measured], Flag: true},
	}}
	if s.Docs != "" {
		form.Links = []report.Link{{Text: "Documentation", Address: s.Docs},
			{Text: "What the words mean", Address: s.Docs + "glossary/"}}
	}
	question := url.Values{}
	for _, f := range form.Fields {
		if f.Value != "" {
			question.Set(f.Name, f.Value)
		}
	}
	for name, v := range values {
		question.Set(name, v)
	}
	question.Del(measured)
	verb := "select"
	if strings.Contains(question.Get("arch"), ",") {
		verb = "compare"
	}
	form.Links = append(form.Links,
		report.Link{Text: "The answer as JSON", Address: "api/v1/" + verb + "?" + question.Encode()},
		report.Link{Text: "What programs can ask", Address: "openapi.json"})
	return form
}

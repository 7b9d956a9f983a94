package dataset

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/strictjson"
)

// DescriptionFile is the file of a data set that says what was measured. Log is the file that measurements are appended
// to.
const (
	DescriptionFile = "dataset.json"
	Log             = "measurements.jsonl"
)

// seeFormat says where the formats are described.
const seeFormat = "docs/data-sets.md describes data sets"

// description is dataset.json.
type description struct {
	Conditions
	Software string `json:"software"`
	Source   string `json:"source"`

	// CSV files need these keys. A line of JSON says the same itself.
	DType   string `json:"dtype,omitempty"`
	TransA  bool   `json:"trans_a,omitempty"`
	TransB  bool   `json:"trans_b,omitempty"`
	GroupM  int    `json:"group_m,omitempty"`
	Library string `json:"library,omitempty"`
	// Untried are configurations, with commas between them.
	Untried string `json:"untried,omitempty"`
}

// AppendDescription appends the dataset.json of a data set in JSON Lines. It returns an error for one that could not be
// read back.
func AppendDescription(dst []byte, d *Dataset) ([]byte, error) {
	want := description{Conditions: d.Conditions, Software: d.Software, Source: d.Source}
	text, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		return dst, err
	}
	text = append(text, '\n')
	got, err := parseDescription(text, DescriptionFile)
	if err == nil && *got != want {
		err = diag.Inputf("a text in it is no UTF-8").At("%s", DescriptionFile)
	}
	if err != nil {
		return dst, err
	}
	return append(dst, text...), nil
}

// parseDescription reads the text of a dataset.json.
func parseDescription(text []byte, place string) (*description, error) {
	if len(text) > int(limit.Text) {
		return nil, diag.Inputf("it is larger than %v, the most that is read of such a file", limit.Text).
			At("%s", place).Do("%s", seeFormat)
	}
	var s description
	if err := strictjson.Unmarshal(text, &s); err != nil {
		return nil, diag.Inputf("not a dataset description: %v", err).At("%s", place).Do("%s", seeFormat)
	}
	missing := s.missing()
	if missing == "" && s.Source == "" {
		missing = "source"
	}
	if missing != "" {
		return nil, diag.Inputf("%s is missing", missing).At("%s", place).Do("%s", seeFormat)
	}
	return &s, nil
}

// describe reads dataset.json into the reader and returns an empty data set under its conditions.
func (r *reader) describe() (*Dataset, error) {
	f, err := r.files.Open(DescriptionFile)
	if err != nil {
		return nil, r.unreadable(DescriptionFile, err)
	}
	defer func() { _ = f.Close() }()
	place := path.Join(r.name, DescriptionFile)
	text, err := limit.ReadAll(f, place, limit.Text, seeFormat)
	if err != nil {
		return nil, unreadable(place, err)
	}
	s, err := parseDescription(text, place)
	if err != nil {
		return nil, err
	}
	r.stated = *s
	if s.DType != "" {
		if r.base.DType, err = gemm.ParseDType(s.DType); err != nil {
			return nil, diag.Inputf("%v", err).At("%s", place)
		}
	}
	r.described = true
	r.base.Batch = 1
	r.base.SetTrans(s.TransA, s.TransB)
	d := New(r.name, s.Conditions)
	d.GroupM, d.Software, d.Source = s.GroupM, s.Software, s.Source
	for text := range strings.SplitSeq(s.Untried, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		c, err := gemm.ParseConfig(text, gemm.Config{Kernel: s.Kernel, GroupM: s.GroupM})
		if err != nil {
			return nil, diag.Inputf("untried: %v", err).At("%s", place)
		}
		d.Untried = append(d.Untried, c)
	}
	return d, nil
}

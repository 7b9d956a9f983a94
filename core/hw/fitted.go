package hw

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/strictjson"
)

// Fitted are numbers of a model that were fitted to measurements of a device. They replace those that the model ships.
type Fitted struct {
	// Model is the name of the model. Kernel is the kernel family of the measurements, empty for several.
	Model, Kernel string
	// DataSet names the measurements, Source says how the numbers were fitted, Date when (YYYY-MM-DD).
	DataSet, Source, Date string
	// Problems are the measured problems.
	Problems []gemm.Problem
	// Values are by the name of the quantity.
	Values map[string]FittedValue
}

// FittedValue is a fitted number.
type FittedValue struct {
	Value float64 `yaml:"value"`
	Unit  string  `yaml:"unit"`
	// Low and High are the range of the values that were fitted without some of the problems.
	Low  float64 `yaml:"low"`
	High float64 `yaml:"high"`
}

// writtenFitted is the YAML form of Fitted. Problems have the keys of gemm.Record.
type writtenFitted struct {
	Model    string                 `yaml:"model"`
	Kernel   string                 `yaml:"kernel,omitempty"`
	DataSet  string                 `yaml:"data_set"`
	Source   string                 `yaml:"source"`
	Date     string                 `yaml:"date"`
	Values   map[string]FittedValue `yaml:"values"`
	Problems []flowMap              `yaml:"problems,omitempty"`
}

// fitted checks what was read.
func (w *writtenFitted) fitted() (*Fitted, error) {
	if w == nil {
		return nil, nil //nolint:nilnil // a file without the section
	}
	if w.Model == "" || w.DataSet == "" || w.Source == "" || len(w.Values) == 0 {
		return nil, errors.New("it needs model, data_set, source, date and values")
	}
	if _, err := time.Parse(time.DateOnly, w.Date); err != nil {
		return nil, fmt.Errorf("it has date %q, which is not YYYY-MM-DD", w.Date)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Values)) {
		v := w.Values[name]
		if !(v.Value > 0) || math.IsInf(v.Value, 0) || v.Unit == "" || !(v.Low >= 0 && v.High >= v.Low) ||
			math.IsInf(v.High, 0) {
			return nil, fmt.Errorf("%s needs a positive value, a unit, and low and high in order", name)
		}
	}
	f := &Fitted{Model: w.Model, Kernel: w.Kernel, DataSet: w.DataSet, Source: w.Source, Date: w.Date, Values: w.Values}
	for i, m := range w.Problems {
		p, err := problemOf(m)
		if err != nil {
			return nil, fmt.Errorf("problems[%d]: %w", i, err)
		}
		f.Problems = append(f.Problems, p)
	}
	return f, nil
}

// writeFitted is the inverse.
func writeFitted(f *Fitted) (*writtenFitted, error) {
	if f == nil {
		return nil, nil //nolint:nilnil // a file without the section
	}
	w := &writtenFitted{Model: f.Model, Kernel: f.Kernel, DataSet: f.DataSet, Source: f.Source, Date: f.Date,
		Values: f.Values}
	for _, p := range f.Problems {
		text, err := json.Marshal(p.Record())
		if err != nil {
			return nil, err
		}
		m := flowMap{}
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, err
		}
		w.Problems = append(w.Problems, m)
	}
	return w, nil
}

// problemOf reads a problem with the keys of gemm.Record.
func problemOf(m flowMap) (gemm.Problem, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return gemm.Problem{}, err
	}
	var r gemm.Record
	if err := strictjson.Unmarshal(text, &r); err != nil {
		return gemm.Problem{}, err
	}
	return r.Problem()
}

// flowMap is a map that YAML writes on one line.
type flowMap map[string]any

// MarshalYAML implements yaml.Marshaler.
func (m flowMap) MarshalYAML() (any, error) {
	var n yaml.Node
	if err := n.Encode(map[string]any(m)); err != nil {
		return nil, err
	}
	n.Style = yaml.FlowStyle
	return &n, nil
}

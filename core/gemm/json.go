package gemm

import (
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/strictjson"
)

// axesKey is the JSON key under which the values on named axes stand, by name.
const axesKey = "axes"

// MarshalJSON writes the numbers by the names of Fields and, if there are any, the values on named axes under "axes".
// What nobody knows, warps among it, is null. The family is not part of it.
func (c Config) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 128)
	for i, v := range c.Numbers() {
		b = append(append(append(b, ",\""...), fields[i].Name...), "\":"...)
		if v == 0 && c.NumWarps == 0 {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendInt(b, int64(v), 10)
		}
	}
	b[0] = '{'
	if c.Axes != (Axes{}) {
		b = append(b, ",\""+axesKey+"\":{"...)
		for name, value := range c.Axes.All() { // letters and digits, which need no quoting
			b = append(append(append(append(append(b, '"'), name...), "\":\""...), value...), "\","...)
		}
		b[len(b)-1] = '}'
	}
	return append(b, '}'), nil
}

// Columns are the keys that MarshalJSON writes.
func (Config) Columns() (names []string) {
	for i := range fields {
		names = append(names, fields[i].Name)
	}
	return append(names, axesKey)
}

// Cells are the values under Columns: empty for null, and axes as "name=value name=value".
func (c Config) Cells() (cells []string) {
	for _, v := range c.Numbers() {
		cell := strconv.Itoa(v)
		if v == 0 && c.NumWarps == 0 {
			cell = ""
		}
		cells = append(cells, cell)
	}
	var axes []string
	for name, value := range c.Axes.All() {
		axes = append(axes, name+"="+value)
	}
	return append(cells, strings.Join(axes, " "))
}

// UnmarshalJSON reads what MarshalJSON writes and keeps the family. A missing number or null becomes 0; an unknown key
// is an error.
func (c *Config) UnmarshalJSON(text []byte) error {
	var v struct {
		BlockM    int               `json:"block_m"`
		BlockN    int               `json:"block_n"`
		BlockK    int               `json:"block_k"`
		GroupM    int               `json:"group_m"`
		NumWarps  int               `json:"num_warps"`
		NumStages int               `json:"num_stages"`
		SplitK    int               `json:"split_k"`
		Axes      map[string]string `json:"axes"`
	}
	if err := strictjson.Unmarshal(text, &v); err != nil || string(text) == "null" {
		return err
	}
	values := make([]AxisValue, 0, len(v.Axes))
	for name, value := range v.Axes {
		values = append(values, AxisValue{name, value})
	}
	axes, err := NewAxes(values...)
	if err == nil {
		*c = Config{v.BlockM, v.BlockN, v.BlockK, v.GroupM, v.NumWarps, v.NumStages, v.SplitK, axes, c.Kernel}
	}
	return err
}

package problems

import (
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/origami-gemm/origami/internal/testing/must"
	"strings"
	"testing"
	"time"
)

// The members of an object are the ones that encoding/json reads, wherever blanks are.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{
		`{"m":1,"n":[2,3],"k":"x\"}y"}`, `{ "a" : { "b" : [ { } , "]" ] } , "c" : -1e-3 , "d":null }`, `{}`, "{\t}",
		`{"\u0061 ":true,"é":"\u00e9","x":"\\"}`, `{"a":"\ud800"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = bytes.TrimSpace(text)
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || text[0] != '{' {
			return
		}
		rows := &jsonRows{text: text}
		got, err := rows.members(nil, string(text), 0, 0)
		if err != nil {
			return // twice, or too many
		}
		must.Need(t, len(got) == len(want), "%s: %d members, want %d", text, len(got), len(want))
		for name, value := range want {
			name = strings.TrimSpace(name)
			if lower := strings.ToLower(name); strings.Contains(" "+strings.Join(columns, " ")+" ", " "+lower+" ") {
				name = lower
			}
			found := false
			for _, m := range got {
				found = found || m.name == name && m.cell == jsonCell(name, string(value)) && bytes.HasPrefix(text[m.at:], value)
			}
			must.Need(t, found, "%s: no %q of %s among %+v", text, name, value, got)
		}
	})
}

// The place of a cell is found in a time that does not grow with what is before it on its line.
func TestPositionsOfOneLine(t *testing.T) {
	var text strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&text, "{\"m\":%d,\"n\":1},", i)
		if i == 100 {
			text.WriteString("\n")
		}
	}
	rows := &jsonRows{text: []byte(text.String())}
	begun := time.Now()
	for at := len("{"); at < len(rows.text); at += 15 {
		line, column := rows.position(at)
		wantLine, wantColumn := 1, at+1
		if end := strings.IndexByte(text.String(), '\n'); at > end {
			wantLine, wantColumn = 2, at-end
		}
		must.Need(t, line == wantLine && column == wantColumn,
			"%d is %d:%d, want %d:%d", at, line, column, wantLine, wantColumn)
		if back := at - 10; back > 0 {
			rows.position(back)
		}
	}
	if took := time.Since(begun); took > 5*time.Second { // 20 s and more with a search of the line for each
		t.Errorf("it takes %v", took)
	}
}

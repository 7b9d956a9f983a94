package session

import (
	"fmt"
	"strings"
	"testing"
)

// A comma ends a side or a number, and which one is clear from the part behind it.
func TestParseSides(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"h200", "h200[]"},
		{"h200,mi300x", "h200[] mi300x[]"},
		{"sm90@h200 gfx942", "sm90@h200[] gfx942[]"},
		{"h200:clock=1.5GHz,num_sms=66,mi300x", "h200[clock=1.5GHz,num_sms=66] mi300x[]"},
		{"h200:clock=1.5GHz num_sms=66", "h200[clock=1.5GHz,num_sms=66]"},
		{"h200,h200:l2_bytes=40MiB", "h200[] h200[l2_bytes=40MiB]"},
		{"sm90@auto:1,auto:1:clock=1e9", "sm90@auto:1[] auto:1[clock=1e9]"},
	} {
		sides, err := parseSides(strings.Fields(c.words))
		if err != nil {
			t.Errorf("%s: %v", c.words, err)
			continue
		}
		var got []string
		for _, s := range sides {
			got = append(got, fmt.Sprintf("%s[%s]", s.name, s.whatIf))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", c.words, text, c.want)
		}
	}
	sides, err := parseSides([]string{"h200:clock=1.5GHz"})
	if v := sides[0].values["clock"]; err != nil || v.Value != 1.5 || v.Unit != "GHz" {
		t.Errorf("%v, %v", sides, err)
	}
}

package dataset

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"
)

// Of 200 digits of a folder that are changed, one at a time, each is noticed, with its line.
func TestVerify(t *testing.T) {
	description, lines := sweeps(t)
	text := strings.Join(lines, "")
	look := func(log string) Verified {
		v, err := Verify("here", fstest.MapFS{DescriptionFile: {Data: []byte(description)}, Log: {Data: []byte(log)}})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := look(text); v.Lines != 6 || v.Files != 1 || v.Unsummed != 0 || len(v.Damaged) > 0 {
		t.Errorf("%+v", v)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for changed := 0; changed < 200; {
		log, at := []byte(text), random.IntN(len(text))
		if log[at] < '0' || log[at] > '9' {
			continue
		}
		log[at] = '0' + (log[at]-'0'+byte(1+random.IntN(9)))%10
		changed++
		where := fmt.Sprintf("here/%s:%d: ", Log, 1+bytes.Count(log[:at], []byte("\n")))
		if v := look(string(log)); len(v.Damaged) != 1 || !strings.HasPrefix(v.Damaged[0], where) {
			t.Errorf("a digit of %s is changed: %v", where, v.Damaged)
		}
	}
	// Damaged lines hide no others, and what another program wrote is counted.
	bad := strings.Replace(lines[1], "64", "65", 1)
	if v := look(lines[0] + bad + unsummed(lines[2]) + bad + lines[3][:20]); len(v.Damaged) != 3 || v.Unsummed != 1 {
		t.Errorf("%+v", v)
	}
	if v := look(text + lines[0]); len(v.Damaged) != 1 || !strings.Contains(v.Damaged[0], "recorded twice") {
		t.Errorf("%+v", v)
	}
}

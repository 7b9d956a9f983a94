package host

import (
	"strings"
	"testing"
)

// Of several faulty entries of a lock file, the same one is said every time.
func TestFaultOfALockFile(t *testing.T) {
	for range 20 {
		_, err := parseLock("lock", []byte(`{"plugins":{"d":{"sha256":"x"},"c":{"sha256":"x"},"b":{"sha256":"x"},
			"a":{"sha256":"x"}}}`))
		if err == nil || !strings.Contains(err.Error(), "the sha256 of a is") {
			t.Fatal(err)
		}
	}
}

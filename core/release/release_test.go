package release

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// Files of other languages, which cannot read the constant, have the same version.
func TestEveryPartHasTheVersion(t *testing.T) {
	for _, part := range []struct{ file, pattern, want string }{
		{"bindings/c/origami.h", `(?m)^#define ORIGAMI_VERSION "(.*)"$`, Version},
		{"bindings/python/origami_gemm/__init__.py", `(?m)^__version__ = "(.*)"$`, python(Version)},
		{"sdk/python/pyproject.toml", `(?m)^version = "(.*)"$`, python(Version)},
		{"docs/install.md", `(?m)^Version (\S+) \(`, Version},
	} {
		text := must.Get(os.ReadFile(filepath.Join("../..", part.file)))(t)
		found := regexp.MustCompile(part.pattern).FindSubmatch(text)
		if found == nil {
			t.Errorf("%s names no version: nothing fits %s", part.file, part.pattern)
		} else if string(found[1]) != part.want {
			t.Errorf("%s names version %s, not %s; run `make version VERSION=%s`", part.file, found[1], part.want,
				Version)
		}
	}
}

// A release has a section in the changelog, and the versions between releases do not.
func TestChangelogHasTheRelease(t *testing.T) {
	text := must.Get(os.ReadFile("../../CHANGELOG.md"))(t)
	number, dev := strings.CutSuffix(Version, "-dev")
	has := strings.Contains(string(text), "\n## ["+number+"]")
	must.That(t, has != dev, "version %s, and the changelog has a section of %s: %v", Version, number, has)
}

func TestVersionIsSemantic(t *testing.T) {
	must.That(t, regexp.MustCompile(`^\d+\.\d+\.\d+(-dev)?$`).MatchString(Version),
		"version %s is neither X.Y.Z nor X.Y.Z-dev", Version)
}

func TestBuildNamesTheCommit(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	revision := setting("vcs.revision", "58da08666aabc0d1e2f3")
	for want, settings := range map[string][]debug.BuildSetting{
		Version:                          {setting("GOOS", "linux")},
		Version + "+58da08666a":          {revision, setting("vcs.modified", "false")},
		Version + "+58da08666a.modified": {revision, setting("vcs.modified", "true")},
		Version + "+58":                  {setting("vcs.revision", "58")},
	} {
		must.Equal(t, BuildOf(&debug.BuildInfo{Settings: settings}).String(), want)
	}
}

// python is a version as Python's packages have it (PEP 440): 0.2.0-dev is 0.2.0.dev0.
func python(version string) string { return strings.Replace(version, "-dev", ".dev0", 1) }

package release

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/internal/testing/must"
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

// The folder from which an image is built has the program per platform and the extra files of .goreleaser.yaml. The
// Dockerfile copies nothing else, and these files exist.
func TestImageCopiesWhatItIsGiven(t *testing.T) {
	var config struct {
		Builds []struct {
			Main         string
			Goos, Goarch []string
		}
		Dockers []struct {
			Dockerfile string
			Platforms  []string
			Extra      []string `yaml:"extra_files"`
		} `yaml:"dockers_v2"`
	}
	must.Do(t, yaml.Unmarshal(read(t, ".goreleaser.yaml"), &config))
	must.Need(t, len(config.Builds) == 1 && len(config.Dockers) == 1,
		"%d programs and %d images, want one of each", len(config.Builds), len(config.Dockers))
	build, image := config.Builds[0], config.Dockers[0]
	for _, platform := range image.Platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		must.That(t, slices.Contains(build.Goos, goos) && slices.Contains(build.Goarch, goarch),
			"the image is for %s, for which nothing is built", platform)
	}
	for _, file := range image.Extra {
		read(t, file)
	}
	given := append(slices.Clone(image.Extra), "$TARGETPLATFORM/"+path.Base(build.Main))
	var copied []string
	for line := range strings.Lines(string(read(t, image.Dockerfile))) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "COPY" {
			copied = append(copied, words[1:len(words)-1]...)
		}
	}
	slices.Sort(given)
	slices.Sort(copied)
	must.Alike(t, copied, given, image.Dockerfile)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join("../..", name)))(t)
}

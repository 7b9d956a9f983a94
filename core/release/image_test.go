package release

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"go.yaml.in/yaml/v3"
)

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

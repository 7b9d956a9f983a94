package catalog_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/catalog"
)

func file(head, vendor string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(head + "\nname: A GPU\nvendor: " + vendor + "\nderived:\n  units: {value: 4, unit: \"1\", source: data sheet, method: datasheet, date: 2026-01-02}\n")}
}

func definition(files fstest.MapFS, opened *catalog.Selection) catalog.Definition {
	return catalog.Definition{
		Name: "test", Version: "1.2.3", Files: files, Vendor: "Ours",
		Models: []string{"refined", "reference"}, Kernels: []string{"triton"}, Options: []arch.Option{{Key: "occ"}},
		Open: func(s catalog.Selection) (arch.Architecture, error) {
			*opened = s
			return nil, nil
		},
	}
}

func TestCatalog(t *testing.T) {
	ctx := context.Background()
	var opened catalog.Selection
	c, err := catalog.New(definition(fstest.MapFS{
		"a.yaml": file("arch: x1\ndevice: small\naliases: [little]", "Ours"),
		"b.yaml": file("arch: x1\ndevice: big\ndefault: true", "Ours"),
		"c.yaml": file("arch: y1\ndevice: other\ndefault: true", "Theirs"),
	}, &opened))
	if err != nil {
		t.Fatal(err)
	}
	m := c.Manifest()
	if len(m.Archs) != 1 || m.Archs[0].ID != "x1" || len(m.Archs[0].Devices) != 2 || m.Archs[0].Devices[0].ID != "big" {
		t.Fatalf("manifest %+v", m)
	}
	for _, r := range []struct {
		request arch.OpenRequest
		device  string
		model   string
	}{
		{arch.OpenRequest{Arch: "x1"}, "big", "refined"},
		{arch.OpenRequest{Arch: "x1", Device: "little", Model: "reference", Options: map[string]string{"occ": "2"}}, "small", "reference"},
	} {
		if _, err := c.Open(ctx, r.request); err != nil || opened.Sheet.Device != r.device || opened.Model != r.model {
			t.Errorf("%+v opens %+v (%v)", r.request, opened, err)
		}
	}
	for want, request := range map[string]arch.OpenRequest{
		"its devices: big, small":       {Arch: "x1", Device: "huge"},
		`unknown architecture "y1"`:     {Arch: "y1"},
		"use one of refined, reference": {Arch: "x1", Model: "oracle"},
		"its options: occ":              {Arch: "x1", Options: map[string]string{"grid": "1"}},
	} {
		if _, err := c.Open(ctx, request); diag.KindOf(err) != diag.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want a hint %q", request, err, want)
		}
	}
}

func TestAmbiguousDevices(t *testing.T) {
	var opened catalog.Selection
	for want, files := range map[string]fstest.MapFS{
		"no default device":     {"a.yaml": file("arch: x1\ndevice: small", "Ours")},
		"second default device": {"a.yaml": file("arch: x1\ndevice: a\ndefault: true", "Ours"), "b.yaml": file("arch: x1\ndevice: b\ndefault: true", "Ours")},
		"name same is taken":    {"a.yaml": file("arch: x1\ndevice: same\ndefault: true", "Ours"), "b.yaml": file("arch: x2\ndevice: b\ndefault: true\naliases: [same]", "Ours")},
		"device is missing":     {"a.yaml": file("arch: x1", "Ours")},
	} {
		if _, err := catalog.New(definition(files, &opened)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

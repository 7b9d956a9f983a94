// Package csvtest reads the tables that tests compare with.
package csvtest

import (
	"compress/gzip"
	"encoding/csv"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Read returns the rows of a CSV file, the header first. A file whose name ends in .gz is unzipped.
func Read(t testing.TB, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	in := io.Reader(file)
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return rows
}

// Named returns the rows of a CSV file below its header, each as cells by column.
func Named(t testing.TB, path string) []map[string]string {
	t.Helper()
	table := Read(t, path)
	rows := make([]map[string]string, len(table)-1)
	for i, cells := range table[1:] {
		rows[i] = map[string]string{}
		for j, column := range table[0] {
			rows[i][column] = cells[j]
		}
	}
	return rows
}

// Int returns the integer in a column of a row of Named.
func Int(t testing.TB, row map[string]string, column string) int {
	t.Helper()
	v, err := strconv.Atoi(row[column])
	if err != nil {
		t.Fatalf("column %s of %v: %v", column, row, err)
	}
	return v
}

// Float returns the number in a column of a row of Named.
func Float(t testing.TB, row map[string]string, column string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(row[column], 64)
	if err != nil {
		t.Fatalf("column %s of %v: %v", column, row, err)
	}
	return v
}

// Ints returns the integers of cells.
func Ints(t testing.TB, cells []string) []int {
	t.Helper()
	list := make([]int, len(cells))
	for i, cell := range cells {
		var err error
		if list[i], err = strconv.Atoi(cell); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

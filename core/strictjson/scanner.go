package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Scanner walks over a JSON text. Its errors begin with ": ", for the path in front of them.
type Scanner struct {
	Text string
	At   int
}

// Next skips white space and returns the byte behind it, 0 at the end.
func (s *Scanner) Next() byte {
	for ; s.At < len(s.Text); s.At++ {
		switch c := s.Text[s.At]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// Odd is the error about what comes next.
func (s *Scanner) Odd(want string) error {
	return fmt.Errorf(": it is no %s: %.10q", want, s.Text[min(s.At, len(s.Text)):])
}

// Each reads the elements between two brackets.
func (s *Scanner) Each(begin, end byte, element func(i int) error) error {
	if s.Next() != begin {
		return s.Odd(map[byte]string{'{': "object", '[': "list"}[begin])
	}
	s.At++
	for i := 0; s.Next() != end; i++ {
		if i > 0 && s.Next() != ',' {
			return s.Odd("comma")
		} else if i > 0 {
			s.At++
		}
		if err := element(i); err != nil {
			return err
		}
	}
	s.At++
	return nil
}

// Quoted reads a text, and reports whether it has escapes. One without is a part of Text.
func (s *Scanner) Quoted() (text string, escaped bool, err error) {
	if s.Next() != '"' {
		return "", false, s.Odd("text")
	}
	begin := s.At
	for s.At++; s.At < len(s.Text) && s.Text[s.At] >= ' '; s.At++ {
		switch s.Text[s.At] {
		case '\\':
			escaped = true
			s.At++
		case '"':
			s.At++
			if text = s.Text[begin+1 : s.At-1]; escaped && json.Unmarshal([]byte(s.Text[begin:s.At]), &text) != nil {
				err = errors.New(": it has an unknown escape")
			}
			return text, escaped, err
		}
	}
	return "", escaped, s.Odd("end of a text")
}

// Bare reads up to the end of a number or a word.
func (s *Scanner) Bare() string {
	s.Next()
	begin := s.At
	for ; s.At < len(s.Text); s.At++ {
		switch s.Text[s.At] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return s.Text[begin:s.At]
		}
	}
	return s.Text[begin:]
}

// IsNumber reports whether what package strconv takes for a number is one in JSON.
func IsNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	digit := func(i int) bool { return i < len(s) && s[i] >= '0' && s[i] <= '9' }
	point := strings.IndexByte(s, '.')
	return digit(0) && (s[0] != '0' || len(s) == 1 || s[1] == '.' || s[1] == 'e' || s[1] == 'E') &&
		(point < 0 || digit(point+1))
}

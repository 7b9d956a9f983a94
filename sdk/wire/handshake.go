package wire

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// ProtocolVersion is the version of the messages and of their meaning. go-plugin compares the host's and the plugin's
// in the handshake, before the first call, and they must be equal.
const ProtocolVersion = 2

// Environment variables that the host sets for a plugin, beside go-plugin's own.
const (
	// EnvWatch is "stdin" when the plugin's standard input is a pipe that the host holds open for as long as it lives.
	// If EnvHostCertificate is set too, its first line is the key of that certificate (see ReadIdentity).
	EnvWatch = "ORIGAMI_PLUGIN_WATCH"
	// EnvLogLevel is the level below which the host drops log lines, as hclog names it.
	EnvLogLevel = "ORIGAMI_PLUGIN_LOG_LEVEL"
	// EnvHostCertificate is go-plugin's, for the host's certificate in PEM. A plugin of go-plugin's AutoMTLS then makes
	// a key of its own, and its handshake has the certificate.
	EnvHostCertificate = "PLUGIN_CLIENT_CERT"
)

// Handshake is the environment variable by which a plugin knows that a host started it. It is no security feature: a
// user who starts a plugin by hand gets a hint.
var Handshake = plugin.HandshakeConfig{MagicCookieKey: "ORIGAMI_PLUGIN",
	MagicCookieValue: "6d9b3c5e1f8247a0b4e2c7d15a90f863"}

// PluginName is the name under which go-plugin's client dispenses the connection to a plugin, a *grpc.ClientConn.
const PluginName = "origami"

// Plugins is what go-plugin serves, or, with a nil service, what its client starts.
func Plugins(s *Service) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{ProtocolVersion: {PluginName: &grpcPlugin{service: s}}}
}

// grpcPlugin registers the services on one side and hands out the connection on the other.
type grpcPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	service *Service
}

// GRPCServer implements plugin.GRPCPlugin.
func (g *grpcPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	g.service.Register(s)
	return nil
}

// GRPCClient implements plugin.GRPCPlugin.
func (g *grpcPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// Identity is a private key with a certificate, made by the host for one run of a plugin. A plugin of package serve
// gets both and has the same identity. The key is on P-256: keys on P-521, which go-plugin makes, take a quarter of the
// time of a cold command, and gRPC's C core, which serves plugins in Python, refuses them.
type Identity struct {
	Certificate string // in PEM
	key         []byte // in the form of SEC 1
	pair        tls.Certificate
	trusted     *x509.CertPool // the certificate alone
}

// NewIdentity makes one.
func NewIdentity() (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{"origami"}},
		DNSNames:              []string{"localhost"},
		NotBefore:             now.Add(-30 * time.Second),
		NotAfter:              now.AddDate(10, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true, // the other side trusts it as its issuer
	}
	der, err1 := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	secret, err2 := x509.MarshalECPrivateKey(key)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return newIdentity(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), secret)
}

// newIdentity joins a certificate in PEM and its key.
func newIdentity(certificate string, key []byte) (*Identity, error) {
	i := &Identity{Certificate: certificate, key: key, trusted: x509.NewCertPool()}
	var err error
	secret := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})
	i.pair, err = tls.X509KeyPair([]byte(certificate), secret)
	i.trusted.AppendCertsFromPEM([]byte(certificate))
	return i, err
}

// ReadIdentity reads what the host gives to a plugin: the certificate, from EnvHostCertificate, and the line with its
// key, from the standard input.
func ReadIdentity(certificate string, stdin *bufio.Reader) (*Identity, error) {
	line, err := stdin.ReadSlice('\n') // a line that is longer than the buffer is no key
	if err != nil {
		return nil, fmt.Errorf("the host sends no key: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(string(line))
	if err != nil {
		return nil, fmt.Errorf("the host's key is not in base64: %w", err)
	}
	return newIdentity(certificate, key)
}

// KeyLine returns the key as the line that ReadIdentity reads.
func (i *Identity) KeyLine() []byte { return append(base64.StdEncoding.AppendEncode(nil, i.key), '\n') }

// TLS is either side of a connection: it accepts the other side if that has this identity, and nobody else. If a plugin
// has another certificate, and says so in its handshake, go-plugin's client puts that in the place of the host's.
func (i *Identity) TLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{i.pair}, MinVersion: tls.VersionTLS12,
		CurvePreferences: []tls.CurveID{tls.X25519}, ServerName: "localhost", RootCAs: i.trusted, ClientCAs: i.trusted,
		ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true}
}

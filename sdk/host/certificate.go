package host

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// envClientCert holds the host's certificate in PEM. The plugin accepts no other client (go-plugin's AutoMTLS). The
// plugin sends its certificate in the handshake, and go-plugin accepts no other server at the socket.
const envClientCert = "PLUGIN_CLIENT_CERT"

// clientIdentity returns the host's side of AutoMTLS for one plugin: the certificate to send and its configuration.
// It differs from AutoMTLS in the curve. go-plugin uses P-521, which costs tens of milliseconds per start and which
// gRPC's C core (plugins in Python, C++) refuses in a client certificate.
func clientIdentity() (certPEM string, config *tls.Config, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetInt64(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{"origami"}},
		DNSNames:              []string{"localhost"},
		NotBefore:             now.Add(-30 * time.Second),
		NotAfter:              now.AddDate(10, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true, // the plugin trusts it as its issuer
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return "", nil, err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		MinVersion:   tls.VersionTLS12,
		RootCAs:      x509.NewCertPool(), // until the plugin has sent its certificate; nil would be the system's
		ServerName:   "localhost",
	}, nil
}

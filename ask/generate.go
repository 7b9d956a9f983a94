package ask

//go:generate sh -c "cd .. && go run ./ask/internal/schema"

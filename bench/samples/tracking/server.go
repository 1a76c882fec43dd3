// Package tracking serves what the depot knows about its parcels.
package tracking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	defaultLimit = 50
	maxLimit     = 500
	keepFinal    = 14 * 24 * time.Hour
	sweepEvery   = 10 * time.Minute
)

var (
	// ErrNotFound is returned for a parcel that is not here.
	ErrNotFound = errors.New("no such parcel")
	// ErrConflict is returned for an event that cannot follow the last one.
	ErrConflict = errors.New("event out of order")
)

// Event is one change of a parcel's status.
type Event struct {
	Status string    `json:"status"`
	At     time.Time `json:"at"`
	Note   string    `json:"note,omitempty"`
}

// Parcel is a parcel with everything that has happened to it.
type Parcel struct {
	ID      string  `json:"id"`
	City    string  `json:"city"`
	WeightG int     `json:"weight_g"`
	Express bool    `json:"express"`
	Events  []Event `json:"events"`
}

// Status returns the latest status.
func (p *Parcel) Status() string {
	if len(p.Events) == 0 {
		return "announced"
	}
	return p.Events[len(p.Events)-1].Status
}

// IsFinal reports whether nothing more will happen to the parcel.
func (p *Parcel) IsFinal() bool {
	status := p.Status()
	return status == "delivered" || status == "returned"
}

// UpdatedAt returns the time of the last event, or the zero time.
func (p *Parcel) UpdatedAt() time.Time {
	if len(p.Events) == 0 {
		return time.Time{}
	}
	return p.Events[len(p.Events)-1].At
}

// Store keeps parcels in memory; it is safe for concurrent use.
type Store struct {
	mu      sync.RWMutex
	parcels map[string]*Parcel
	cities  map[string]map[string]struct{}
	now     func() time.Time
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{
		parcels: make(map[string]*Parcel),
		cities:  make(map[string]map[string]struct{}),
		now:     time.Now,
	}
}

// Put adds a parcel or replaces the one with its id.
func (s *Store) Put(parcel Parcel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.parcels[parcel.ID]; ok {
		delete(s.cities[old.City], parcel.ID)
	}
	s.parcels[parcel.ID] = &parcel
	if s.cities[parcel.City] == nil {
		s.cities[parcel.City] = make(map[string]struct{})
	}
	s.cities[parcel.City][parcel.ID] = struct{}{}
}

// Get returns a copy of the parcel with an id.
func (s *Store) Get(id string) (Parcel, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	parcel, ok := s.parcels[id]
	if !ok {
		return Parcel{}, fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	return *parcel, nil
}

// Record appends an event to a parcel.
func (s *Store) Record(id string, event Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	parcel, ok := s.parcels[id]
	if !ok {
		return fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	if parcel.IsFinal() || event.At.Before(parcel.UpdatedAt()) {
		return fmt.Errorf("%s: %w", id, ErrConflict)
	}
	parcel.Events = append(parcel.Events, event)
	return nil
}

// InCity returns the parcels of a city, the newest first.
func (s *Store) InCity(city string, limit int) []Parcel {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found := make([]Parcel, 0, len(s.cities[city]))
	for id := range s.cities[city] {
		found = append(found, *s.parcels[id])
	}
	sort.Slice(found, func(i, j int) bool {
		return found[i].UpdatedAt().After(found[j].UpdatedAt())
	})
	if len(found) > limit {
		found = found[:limit]
	}
	return found
}

// Search returns the ids that contain a text.
func (s *Store) Search(text string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	wanted := strings.ToUpper(strings.TrimSpace(text))
	var found []string
	for id := range s.parcels {
		if strings.Contains(id, wanted) {
			found = append(found, id)
		}
	}
	sort.Strings(found)
	return found
}

// Sweep forgets parcels that have been final for long, but never the newest of a
// city: the page of a city without any parcel would look broken.
func (s *Store) Sweep() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := s.now().Add(-keepFinal)
	gone := 0
	for _, ids := range s.cities {
		var newest string
		for id := range ids {
			if newest == "" || s.parcels[id].UpdatedAt().After(s.parcels[newest].UpdatedAt()) {
				newest = id
			}
		}
		for id := range ids {
			parcel := s.parcels[id]
			if id == newest || !parcel.IsFinal() || parcel.UpdatedAt().After(oldest) {
				continue
			}
			delete(ids, id)
			delete(s.parcels, id)
			gone++
		}
	}
	return gone
}

// Run sweeps the store until the context ends.
func (s *Store) Run(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if gone := s.Sweep(); gone > 0 {
				slog.Info("swept", "parcels", gone)
			}
		}
	}
}

// Handler answers the tracking page's questions.
func Handler(store *Store) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /parcels/{id}", func(w http.ResponseWriter, r *http.Request) {
		parcel, err := store.Get(r.PathValue("id"))
		if err != nil {
			fail(w, err)
			return
		}
		write(w, http.StatusOK, parcel)
	})
	mux.HandleFunc("GET /parcels", func(w http.ResponseWriter, r *http.Request) {
		limit, err := limitOf(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		write(w, http.StatusOK, store.InCity(r.URL.Query().Get("city"), limit))
	})
	mux.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) {
		write(w, http.StatusOK, store.Search(r.URL.Query().Get("q")))
	})
	mux.HandleFunc("POST /parcels/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		var event Event
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := store.Record(r.PathValue("id"), event); err != nil {
			fail(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxLimit {
		return 0, fmt.Errorf("limit must be 1 to %d", maxLimit)
	}
	return limit, nil
}

func write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		slog.Error("answer not written", "error", err)
	}
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, ErrConflict):
		status = http.StatusConflict
	}
	http.Error(w, err.Error(), status)
}

"""The page of a broker: plain files that are served as they are. See `http.page_routes`."""

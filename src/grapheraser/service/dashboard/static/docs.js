// Swagger UI on the service's own schema; it asks no other host for anything.

const token = document.querySelector("meta[name=csrf-token]")?.content;

window.SwaggerUIBundle({
  url: "/openapi.json",
  domNode: document.getElementById("swagger-ui"),
  deepLinking: true,
  docExpansion: "list",
  tryItOutEnabled: true,
  validatorUrl: null,
  // Whoever has signed in to the dashboard needs no key here; what changes something needs this.
  requestInterceptor: (request) => {
    if (token && !request.headers.Authorization) request.headers["X-CSRF-Token"] = token;
    return request;
  },
});

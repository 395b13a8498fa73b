// The interactive page of the API, in the place of the plain list.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("plain").hidden = true;
  SwaggerUIBundle({
    url: "/openapi.json", dom_id: "#interactive", deepLinking: true, docExpansion: "list", validatorUrl: null,
    tryItOutEnabled: true, defaultModelsExpandDepth: 0, syntaxHighlight: false,
  });
});
